"""The activity panel of a run: events become lines of HTML."""
