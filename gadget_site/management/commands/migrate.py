"""`python manage.py migrate`: Django's command, without our time limits."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DatabaseError, connection

from agents.platform.database_outages import describe_outage
from agents.platform.database_server import wait_for_server
from agents.platform.schema_version import WrongSchemaError, check_schema


class Command(migrate.Command):
    """Waits for the server, then migrates without a time limit: building an index of a large table
    can take long."""

    def handle(self, *args: Any, **options: Any) -> None:
        if refusal := wait_for_server():
            raise CommandError(f"The database server refuses: {refusal.words}")
        try:
            check_schema()
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("SET statement_timeout = 0")
                connection.connection.response_timeout_s = (
                    None  # see gadget_site/response_timeout.py
                )
            super().handle(*args, **options)
        except WrongSchemaError as error:
            raise CommandError(f"{error} Nothing was changed.") from error
        except DatabaseError as error:
            if condition := describe_outage(error) or describe_outage(error.__context__ or error):
                raise CommandError(
                    f"The migrations did not finish. {condition} Fix that, then start again."
                ) from error
            raise
