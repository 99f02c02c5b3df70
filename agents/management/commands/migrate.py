"""`python manage.py migrate`: Django's own, which may take as long as it needs."""

from typing import Any

from django.core.management.commands import migrate
from django.db import connection


class Command(migrate.Command):
    """Rebuilding an index of a large table takes longer than any statement of a request may."""

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET statement_timeout = 0")
            connection.connection.answer_s = None  # gadget_site/answering.py
        super().handle(*args, **options)
