"""Business records of an organization, their history, named lists, and drafts about them."""

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import F, Func, IntegerField, Q
from django.db.models.functions import Lower, Now

from tools.contract.look_alikes import LONGEST_LOOK, compute_look
from tools.contract.name_likeness import NameKeys, compute_stem

SCORE_OR_LESS = "COALESCE(%(expressions)s, -1)"
"""The sort key of scores, which puts records without a score below records with a score of 0. With
a parameter in place of -1, the expression would not match the index."""
_THIRD, _MOST = "((LENGTH(%(expressions)s) - 1) / 3)", "(LENGTH(%(expressions)s) * 2 / 3)"
NAME_KEYS = {
    name: Func("look", template=f"({template})", output_field=models.TextField())
    for name, template in NameKeys(
        start=f"SUBSTR(%(expressions)s, 1, {_MOST})",
        end=f"SUBSTR(%(expressions)s, LENGTH(%(expressions)s) + 1 - {_MOST})",
        edges=f"SUBSTR(%(expressions)s, 1, {_THIRD})"
        f" || SUBSTR(%(expressions)s, LENGTH(%(expressions)s) + 1 - {_THIRD})",
    )
    ._asdict()
    .items()
}
"""Expressions for the keys of a look, as `name_likeness.py` computes them; each has an index."""


class Status(models.TextChoices):
    ACTIVE = "active"
    INACTIVE = "inactive"
    PENDING = "pending"


class Qualification(models.TextChoices):
    QUALIFIED = "qualified"
    DISQUALIFIED = "disqualified"


if TYPE_CHECKING:
    TextColumn = models.CharField[str, str]
else:
    TextColumn = models.CharField


class LookField(TextColumn):
    """The look of the record's name, set by every save; an `update(name=…)` must set it, too."""

    compute = staticmethod(compute_look)

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        look = self.compute(str(getattr(model_instance, "name", "")))
        setattr(model_instance, self.attname, look)
        return look


class StemField(LookField):
    """The look of the record's name without its last words, set like the look."""

    compute = staticmethod(compute_stem)


class Record(models.Model):
    """One company, customer or lead; `version` grows by one with every change."""

    organization = models.ForeignKey(
        "accounts.Organization", models.CASCADE, related_name="records"
    )
    name = models.CharField(max_length=200)
    look = LookField(max_length=LONGEST_LOOK, blank=True, default="", editable=False)
    stem = StemField(max_length=LONGEST_LOOK, blank=True, default="", db_default="", editable=False)
    region = models.CharField(max_length=50, blank=True, default="")
    category = models.CharField(max_length=80, blank=True, default="")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    score = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="0 to 100; empty means not scored"
    )
    email = models.CharField(max_length=254, blank=True, default="")
    domain = models.CharField(max_length=253, blank=True, default="")
    phone = models.CharField(max_length=40, blank=True, default="")
    notes = models.TextField(blank=True, default="")
    attributes = models.JSONField(blank=True, default=dict)
    qualification = models.CharField(
        max_length=12, choices=Qualification.choices, blank=True, default=""
    )
    qualification_reason = models.CharField(max_length=500, blank=True, default="")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name", "id")
        indexes = (
            models.Index(fields=("organization", "name", "id"), name="record_name"),
            models.Index(fields=("organization", "look"), name="record_look"),
            models.Index(fields=("organization", "stem"), name="record_stem"),
            models.Index(F("organization"), NAME_KEYS["start"], name="record_look_start"),
            models.Index(F("organization"), NAME_KEYS["end"], name="record_look_end"),
            models.Index(F("organization"), NAME_KEYS["edges"], name="record_look_edges"),
            models.Index(F("organization"), Lower("email"), name="record_email"),
            models.Index(F("organization"), Lower("domain"), name="record_domain"),
            models.Index(
                F("organization"),
                Func("score", template=SCORE_OR_LESS, output_field=IntegerField()),
                F("id"),
                name="record_score",
            ),
            models.Index(fields=("organization", "updated_at", "id"), name="record_changed"),
            models.Index(fields=("organization", "status"), name="record_status"),
            models.Index(fields=("organization", "region"), name="record_region"),
            models.Index(fields=("organization", "category"), name="record_category"),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(status__in=Status.values), name="record_status_known"
            ),
            models.CheckConstraint(
                condition=Q(score__isnull=True) | Q(score__gte=0, score__lte=100),
                name="record_score_0_to_100",
            ),
            models.CheckConstraint(
                condition=Q(qualification__in=["", *Qualification.values]),
                name="record_qualification_known",
            ),
        )

    def __str__(self) -> str:
        return self.name


class RecordChange(models.Model):
    """One entry in a record's history: the changed fields and the author."""

    record = models.ForeignKey(Record, models.CASCADE, related_name="changes")
    version = models.PositiveIntegerField(help_text="The record's version after this change")
    call_id = models.CharField(max_length=64, blank=True, default="")
    run_id = models.CharField(max_length=64, blank=True, default="")
    actor = models.CharField(max_length=200, blank=True, default="")
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"version {self.version} of record {self.record_id}"


class RecordList(models.Model):
    """A named list of records."""

    organization = models.ForeignKey(
        "accounts.Organization", models.CASCADE, related_name="record_lists"
    )
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="record_list_name"),
        )

    def __str__(self) -> str:
        return self.name


class ListEntry(models.Model):
    """A record on a list."""

    list = models.ForeignKey(RecordList, models.CASCADE, related_name="entries")
    record = models.ForeignKey(Record, models.CASCADE, related_name="list_entries")
    added_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("id",)
        verbose_name_plural = "list entries"
        constraints = (models.UniqueConstraint(fields=("list", "record"), name="list_entry_once"),)

    def __str__(self) -> str:
        return f"record {self.record_id} on list {self.list_id}"


class Draft(models.Model):
    """A Markdown text by an employee, with links to the records that it is about."""

    class Kind(models.TextChoices):
        SUMMARY = "summary"
        REPORT = "report"

    organization = models.ForeignKey("accounts.Organization", models.CASCADE, related_name="drafts")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    title = models.CharField(max_length=200)
    body = models.TextField(help_text="Markdown")
    records = models.ManyToManyField(Record, blank=True, related_name="drafts")
    employee = models.CharField(max_length=200, blank=True, default="", help_text="Who wrote it")
    run_id = models.CharField(max_length=64, blank=True, default="")
    idempotency_key = models.CharField(max_length=200, blank=True, default="", editable=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("organization", "-id"), name="draft_newest"),)
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "idempotency_key"),
                condition=~Q(idempotency_key=""),
                name="draft_once_per_call",
            ),
        )

    def __str__(self) -> str:
        return self.title
