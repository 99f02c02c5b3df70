"""`manage.py doctor`: what is wrong with this installation, and how to mend it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from gadget_site.management.examinations import examine
from gadget_site.management.findings import Finding


class Command(BaseCommand):
    """Examines settings, database, Redis, workers, sweeper, providers and sources."""

    help = "Checks settings, database, Redis, worker, sweeper, providers and sources; exit 1 if anything is wrong."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """`--json` for machines."""
        parser.add_argument("--json", action="store_true", help="one JSON list of {subject, text, mend, is_well}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints one line per finding as it comes; ends with code 1 if any is not well."""
        findings = []
        for finding in examine():
            findings.append(finding)
            if not options["json"]:
                self._print(finding)
        wrong = sum(not finding.is_well for finding in findings)
        if options["json"]:
            rows = [{**asdict(finding), "is_well": finding.is_well} for finding in findings]
            self.stdout.write(json.dumps(rows, indent=2))
        else:
            self.stdout.write(f"{wrong} of {len(findings)} need mending." if wrong else "All is well.")
        if wrong:
            raise SystemExit(1)

    def _print(self, finding: Finding) -> None:
        if finding.is_well:
            self.stdout.write(f"ok     {finding.subject}: {finding.text}")
        else:
            self.stdout.write(f"WRONG  {finding.subject}: {finding.text}")
            self.stdout.write(f"       to mend it: {finding.mend}")
