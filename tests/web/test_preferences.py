"""Members choose their language, time zone and units. Tools read these preferences, and notices use
the same time zone."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpResponse

from agents.accounts.models import AuditEntry, Preferences
from agents.accounts.preferences import ChosenPreferences
from agents.notices.choices import ChosenTimes, load_choices, load_pace_rules, save_choices
from tests.web.pages import read_page
from tests.world import World

pytestmark = pytest.mark.django_db

PAGE = "/account/preferences/"
CHOSEN = {"language": "de-CH", "time_zone": "Europe/Zurich", "units": "metric"}


def save(world: World, by: str = "operator", **typed: Any) -> HttpResponse:
    response: HttpResponse = world.client(by).post(PAGE, {**CHOSEN, **typed})  # type: ignore[assignment]
    return response


def chosen(world: World, username: str = "operator") -> dict[str, str]:
    member = world.member(username)
    return dict(ChosenPreferences(member.organization_id, member.user_id))


def test_preferences_are_saved_shown_and_audited(world: World) -> None:
    assert chosen(world) == {}
    assert save(world).status_code == 302
    assert chosen(world) == CHOSEN
    html = read_page(world.client("operator"), PAGE)
    assert 'value="de-CH"' in html
    assert 'value="Europe/Zurich"' in html
    assert '<option value="metric" selected>' in html
    entry = AuditEntry.objects.get(action="preferences_changed")
    assert (entry.actor, entry.payload) == (
        "user:operator",
        {"language": "de-CH", "units": "metric"},
    )
    save(world, language="", units="")
    assert chosen(world) == {"time_zone": "Europe/Zurich"}


def test_the_time_zone_is_shared_with_notices(world: World) -> None:
    member = world.member("operator")
    save_choices(member, {}, ChosenTimes("22:00", "07:00", "09:00", "Asia/Tokyo"))
    assert chosen(world) == {"time_zone": "Asia/Tokyo"}
    assert 'value="Asia/Tokyo"' in read_page(world.client("operator"), PAGE)
    save(world)
    row = load_choices(member)
    assert (row.time_zone, row.quiet_from is None, row.digest_at.hour) == (
        "Europe/Zurich",
        False,
        9,
    )
    assert str(load_pace_rules([member.pk])[member.pk].zone) == "Europe/Zurich"


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ({"language": "German"}, "is not a language code such as en or de-CH."),
        ({"language": "<b>"}, "is not a language code"),
        ({"units": "nautical"}, "is not one of metric, imperial."),
        ({"time_zone": "Mars/Base"}, "is not a time zone such as Europe/London."),
        ({"time_zone": ""}, "is not a time zone"),
    ],
)
def test_an_invalid_choice_is_explained_and_stays_in_the_form_but_is_not_saved(
    world: World, typed: dict[str, str], reason: str
) -> None:
    response = save(world, **typed)
    assert response.status_code == 422
    html = response.content.decode()
    assert reason in html
    assert "<b>" not in html.partition("<main")[2].partition("</h1>")[2].partition("<form")[0]
    assert 'value="Europe/Zurich"' in html or "time_zone" in typed
    assert chosen(world) == {}


def test_each_member_has_separate_preferences_in_each_organization(world: World) -> None:
    save(world)
    assert chosen(world, "viewer") == {}
    member = world.member("operator")
    assert dict(ChosenPreferences(member.organization_id + 1, member.user_id)) == {}
    member.delete()
    assert not Preferences.objects.exists()
