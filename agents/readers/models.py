"""The model of cursors: the places up to which readers have read their logs."""

from django.db import models


class ReaderCursor(models.Model):
    """A reader's place in its log, locked while a worker reads.

    Attributes:
        reader: the reader's name.
        position: the id up to which all rows were read or skipped, except rows in holes.
        holes: the ranges of missing ids that may still appear, each as a `Hole`. The reader waits
            for the holes after the position.
    """

    reader = models.CharField(max_length=40, unique=True)
    position = models.BigIntegerField(default=0)
    holes = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.reader} up to {self.position}"
