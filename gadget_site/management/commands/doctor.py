"""`manage.py doctor`: checks the installation, and says how to fix each problem."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from gadget_site.management.findings import Finding
from gadget_site.management.installation_checks import check_installation


class Command(BaseCommand):
    """Runs all checks of the installation, and prints their findings."""

    help = "Check settings, database, Redis, workers, sweeper, providers and sources; exit 1 if anything is wrong."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--json`, for other programs."""
        parser.add_argument(
            "--json", action="store_true", help="one JSON list of {subject, text, fix, is_well}"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each finding as soon as it is known; exit with code 1 if any needs fixing."""
        findings = []
        for finding in check_installation():
            findings.append(finding)
            if not options["json"]:
                self._print(finding)
        wrong = sum(not finding.is_well for finding in findings)
        if options["json"]:
            rows = [{**asdict(finding), "is_well": finding.is_well} for finding in findings]
            self.stdout.write(json.dumps(rows, indent=2))
        else:
            self.stdout.write(
                f"{wrong} of {len(findings)} checks failed." if wrong else "All checks passed."
            )
        if wrong:
            raise SystemExit(1)

    def _print(self, finding: Finding) -> None:
        if finding.is_well:
            self.stdout.write(f"ok     {finding.subject}: {finding.text}")
        else:
            self.stdout.write(f"WRONG  {finding.subject}: {finding.text}")
            self.stdout.write(f"       to fix it: {finding.fix}")
