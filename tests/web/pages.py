"""A helper that reads pages as text."""

from __future__ import annotations

from django.test import Client


def read_page(client: Client, path: str = "/") -> str:
    """Return the HTML of a page, which must return 200."""
    response = client.get(path)
    assert response.status_code == 200, response.content
    return response.content.decode()
