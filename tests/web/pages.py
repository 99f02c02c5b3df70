"""Reading pages as text."""

from __future__ import annotations

from django.test import Client


def read_page(client: Client, path: str = "/") -> str:
    """Return the HTML of a page, which must answer 200."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()
