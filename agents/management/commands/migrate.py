"""`python manage.py migrate`: Django's own, which may take as long as it needs."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DatabaseError, connection

from agents.database_condition import condition_of


class Command(migrate.Command):
    """Rebuilding an index of a large table takes longer than any statement of a request may."""

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET statement_timeout = 0")
            connection.connection.answer_s = None  # gadget_site/answering.py
        try:
            super().handle(*args, **options)
        except DatabaseError as error:
            if condition := condition_of(error) or condition_of(error.__context__ or error):
                raise CommandError(
                    f"The migrations did not finish. {condition} Mend that, then start again."
                ) from error
            raise
