"""The models about the installation itself."""

from django.db import models

from agents.platform.encrypted_fields import EncryptedTextField


class Installation(models.Model):
    """The installation, in a single row. Each process compares itself with this row at startup
    (agents/accounts/installation.py).

    Attributes:
        folder_mark: the id that is also in the files folder, so that a wrong folder is noticed.
        canary: a random value encrypted with GADGET_ENCRYPTION_KEYS, so that wrong keys are
            noticed.
    """

    folder_mark = models.CharField(max_length=64)
    canary = EncryptedTextField()

    class Meta:
        constraints = (
            models.CheckConstraint(condition=models.Q(pk=1), name="there_is_one_installation"),
        )

    def __str__(self) -> str:
        return self.folder_mark[:8]


class WriteProbe(models.Model):
    """A row that is written and removed to test whether the database accepts writes
    (agents/platform/writability.py)."""

    filler = models.BinaryField()

    def __str__(self) -> str:
        return str(self.pk)


class OldestSchema(models.Model):
    """The oldest code that may still run on this database, in a single row that migrations write.

    Attributes:
        oldest: the schema version of that code (agents/platform/schema_version.py).
        gadget: the Gadget version of that code, for people.
    """

    oldest = models.PositiveIntegerField()
    gadget = models.CharField(max_length=40)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=models.Q(pk=1), name="there_is_one_oldest_schema"),
        )

    def __str__(self) -> str:
        return f"{self.oldest} ({self.gadget})"
