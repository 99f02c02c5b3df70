"""The replay of a run: the whole run as it happened, from its events alone."""
