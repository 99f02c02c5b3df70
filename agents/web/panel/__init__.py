"""The activity panel of a run, which shows events as lines of HTML."""
