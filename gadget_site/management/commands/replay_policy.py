"""`manage.py replay_policy`: judges recorded calls again by the rules and facts of their time."""

from __future__ import annotations

import os
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.accounts.models import Organization
from agents.policy.recorded_calls import CallFilter, ReplayOutcome
from agents.policy.replay import ReplayReport, find_bounds, replay

WORDS = {
    ReplayOutcome.ERASED.value: "erased",
    ReplayOutcome.PRUNED.value: "kept no facts or no snapshot",
    ReplayOutcome.MISSING.value: "name a snapshot that is missing",
    ReplayOutcome.UNREADABLE.value: "have a snapshot or facts that cannot be read",
}
"""The words for the outcomes other than equal and different."""
MAX_EXPLAINED = 100
"""The maximum number of calls for which the report says why they were not replayed; further calls
are only counted."""


class Command(BaseCommand):
    """Reads calls and snapshots, and changes nothing; exits with 1 if a verdict differs or a record
    is damaged."""

    help = "Judge recorded calls again under their own policy snapshots, and name every verdict that differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--organization", metavar="SLUG", help="replay only calls of this organization"
        )
        parser.add_argument(
            "--since",
            metavar="DATE",
            help="only calls since this day or time in UTC, e.g. 2026-11-24",
        )
        parser.add_argument("--limit", type=int, metavar="N", help="only the newest N calls")
        parser.add_argument(
            "--processes",
            type=int,
            default=min(2, os.cpu_count() or 1),
            help="processes that share the work",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        limit = options["limit"]
        if options["processes"] < 1 or (limit is not None and limit < 1):
            raise CommandError("--limit and --processes must be at least 1.")
        chosen = CallFilter(
            _find_organization(options["organization"]), since=_parse_time(options["since"])
        )
        bounded = find_bounds(chosen, limit)
        if bounded is None:
            self.stdout.write("There are no calls to replay.")
            return
        began, explained = time.monotonic(), set[str]()
        counts, preapprovals, rulings = Counter[str](), Counter[str](), Counter[str]()
        for report in replay(bounded, options["processes"]):
            counts += report.counts
            preapprovals += report.preapprovals
            rulings += report.rulings
            self._print(report, explained)
        self._summarize(counts, preapprovals, rulings, time.monotonic() - began)

    def _print(self, report: ReplayReport, explained: set[str]) -> None:
        for line in report.differences:
            self.stdout.write(line)
        for reason, call_id in report.unreadable.items():
            if reason not in explained and len(explained) < MAX_EXPLAINED:
                explained.add(reason)
                self.stdout.write(f"call {call_id}: {reason}")

    def _summarize(
        self,
        counts: Counter[str],
        preapprovals: Counter[str],
        rulings: Counter[str],
        seconds: float,
    ) -> None:
        total = counts.total()
        speed = f"{total / seconds:,.0f} per second" if seconds else ""
        self.stdout.write(f"{total:,} calls replayed in {seconds:.1f} s, {speed}")
        self.stdout.write(f"  {counts['equal']:,} equal")
        self.stdout.write(f"  {counts['different']:,} different")
        for kind, words in WORDS.items():
            if counts[kind]:
                self.stdout.write(f"  {counts[kind]:,} {words}: not replayed")
        if preapprovals:
            self.stdout.write(
                f"  {preapprovals['equal']:,} of {preapprovals.total():,} approvals by standing grants are equal"
            )
        if rulings:
            self.stdout.write(
                f"  {rulings['equal']:,} of {rulings.total():,} approvals under approval rules are equal"
            )
        wrong = counts["different"] + counts[ReplayOutcome.UNREADABLE.value]
        if wrong or preapprovals["different"] or rulings["different"]:
            of_calls = f"{wrong:,} of {total:,} calls" if wrong else ""
            of_preapprovals = (
                f"{preapprovals['different']:,} approvals by standing grants"
                if preapprovals["different"]
                else ""
            )
            of_rulings = (
                f"{rulings['different']:,} approvals under approval rules"
                if rulings["different"]
                else ""
            )
            wrong_ones = " and ".join(filter(None, (of_calls, of_preapprovals, of_rulings)))
            raise CommandError(f"{wrong_ones} do not match their records.")


def _find_organization(slug: str | None) -> int | None:
    if not slug:
        return None
    found = Organization.objects.filter(slug=slug).values_list("pk", flat=True).first()
    if found is None:
        raise CommandError(f"There is no organization with the slug {slug!r}.")
    return int(found)


def _parse_time(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"--since {text!r} is not a date such as 2026-11-24.") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
