"""Pages load nothing from other sites and run no inline code; only the admin can run inline
code."""

from __future__ import annotations

import pytest
from django.test import Client

HEADER = "Content-Security-Policy"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/login/", "/api/docs", "/api/health", "/adminx/"])
def test_a_page_runs_only_our_own_files(client: Client, path: str) -> None:
    policy = client.get(path)[HEADER]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy + ";"
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_the_admin_can_run_inline_code_but_load_nothing_from_other_sites(client: Client) -> None:
    policy = client.get("/admin/login/")[HEADER]
    assert "script-src 'self' 'unsafe-inline' 'unsafe-eval'" in policy
    assert "http" not in policy
