"""`manage.py demo`: creates the demo's organizations with people, employees and records; can be
repeated."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.employees.models import ProviderKind
from gadget_site.demo.accounts import describe, find_open_accounts
from gadget_site.demo.building import RealModel, build
from gadget_site.demo.names import PASSWORD
from gadget_site.demo.removing import DemoAtWorkError, remove
from gadget_site.demo.staff import OUTSIDER, PEOPLE

USUAL_MODEL = "gpt-5-mini"
USUAL_OLLAMA_MODEL = "qwen3"


class Command(BaseCommand):
    """Builds the demo, brings it up to date, or removes it."""

    help = "Create the demo organizations, bring them up to date, or remove them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--force",
            action="store_true",
            help="work even while DEBUG is off, although everybody knows the demo's password",
        )
        parser.add_argument(
            "--keep",
            action="store_true",
            help="only add what is missing; change nothing and restore no record",
        )

        parser.add_argument(
            "--remove", action="store_true", help="remove the demo's organizations and accounts"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["remove"]:
            self._remove()
            return
        if not (settings.DEBUG or options["force"]):
            raise CommandError(
                "DEBUG is off, so this may be a real installation, and everybody knows the demo's password. "
                "To create the demo anyway: manage.py demo --force"
            )
        built = build(_find_real_model(), resets=not options["keep"])
        if not options["verbosity"]:
            return
        for change in built.changes:
            self.stdout.write(f"created or updated: {change}")
        state = "The demo is ready." if built.changes else "The demo was up to date."
        names = ", ".join((*PEOPLE, OUTSIDER))
        self.stdout.write(f"{state} Users: {names}. Password: {PASSWORD}")

    def _remove(self) -> None:
        """Remove the demo, and print what was removed and kept."""
        try:
            removal = remove()
        except DemoAtWorkError as error:
            raise CommandError(str(error)) from error
        for each in removal.removed:
            self.stdout.write(f"removed: {each}")
        for each in removal.kept:
            self.stdout.write(f"kept: {each}")
        if not removal.removed:
            self.stdout.write("There was no demo to remove.")
        if open_accounts := find_open_accounts():
            self.stdout.write(
                f"{describe(open_accounts)} Change it with `manage.py changepassword NAME`."
            )


def _find_real_model() -> RealModel | None:
    """Return the model that the environment names, or None. OPENAI_* takes precedence
    over Ollama."""
    base_url, api_key = settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY
    if api_key or base_url:
        return RealModel(ProviderKind.OPENAI, base_url, api_key, settings.OPENAI_MODEL, USUAL_MODEL)
    if settings.OLLAMA_HOST:
        return RealModel(
            ProviderKind.OLLAMA, settings.OLLAMA_HOST, "", settings.OLLAMA_MODEL, USUAL_OLLAMA_MODEL
        )
    return None
