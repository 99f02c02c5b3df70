"""The playback of a run: the whole run as it happened, from its events alone."""
