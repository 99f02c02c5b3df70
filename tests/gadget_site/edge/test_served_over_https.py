"""Behind a TLS proxy, links, cookies and HSTS follow the configured origin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.gadget_site.edge.site import Site
from tests.gadget_site.edge.test_whole_responses import static_file
from tests.processes import Installation
from tests.world import make_world

pytestmark = pytest.mark.once

ORIGIN = "https://gadget.example.com"
VARIABLES = {
    "ALLOWED_ORIGINS": f"{ORIGIN},https://other.example.com",
    "TRUSTED_PROXIES": "127.0.0.1",
}


def test_links_cookies_and_hsts_follow_the_configured_origin(transactional_db: None) -> None:
    with Installation(variables=VARIABLES) as installation:
        installation.start_web()
        site = Site(installation, make_world())
        admin, viewers_id = site.cookies("admin"), site.world.member("viewer").pk
        with site.connect() as wire:
            login = wire.ask("GET", "/login/")
            assert login.headers["strict-transport-security"] == "max-age=31536000"
            assert "Secure" in login.headers["set-cookie"]
            assert "strict-transport-security" in wire.ask("GET", static_file()).headers
            assert "strict-transport-security" in wire.ask("GET", "/api/health").headers
            over_http = wire.ask("GET", "/login/", {"X-Forwarded-Proto": "http"})
            assert "strict-transport-security" not in over_http.headers
            for path in ("/users/invite/", f"/users/{viewers_id}/password/"):
                form = {
                    "Content-Type": "application/x-www-form-urlencoded",
                    "Origin": ORIGIN,
                    **admin,
                }
                assert wire.ask("POST", path, form, b"role=viewer&days=7").status == 302
                link = re.search(
                    rb'id="new-link" value="([^"]+)"', wire.ask("GET", "/users/", admin).body
                )
                assert link is not None
                assert link[1].startswith(f"{ORIGIN}/".encode())


def test_only_one_function_makes_absolute_links() -> None:
    """Behind a proxy, a link built from the request alone would start with http://."""
    sources = [
        path
        for name in ("agents", "gadget_site", "tools")
        for path in (settings.BASE_DIR / name).rglob("*.py")
    ]
    found = [path for path in sources if "build_absolute_uri" in path.read_text(encoding="utf-8")]
    assert found == [Path(settings.BASE_DIR) / "agents" / "web" / "views" / "absolute_links.py"]
