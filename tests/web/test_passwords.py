"""Passwords: an admin's link resets a password and revokes the member's API tokens; members can
also change their own passwords."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from agents.accounts import members
from agents.accounts.membership import authenticate_token, hash_secret, issue_token
from agents.accounts.models import AuditEntry, Membership, PasswordReset, Role
from agents.platform.refusals import Forbidden, NotFound
from tests.web.test_users import PASSWORD, create_reset_link, open_link, read_page
from tests.world import World, nobody

pytestmark = pytest.mark.django_db


class TestAPasswordResetByLink:
    def test_sets_a_new_password_and_ends_old_sessions(self, world: World) -> None:
        elsewhere = world.client("viewer")
        client = open_link(create_reset_link(world, "viewer"))
        weak = client.post("/new-password/", {"password": "short", "again": "short"})
        assert weak.status_code == 422
        response = client.post("/new-password/", {"password": PASSWORD, "again": PASSWORD})
        assert (response.status_code, response["Location"]) == (302, "/login/")
        assert User.objects.get(username="viewer").check_password(PASSWORD)
        assert elsewhere.get("/").status_code == 302
        assert client.get("/new-password/").status_code == 404

    def test_revokes_the_members_api_tokens_in_the_organization_and_says_so_before_and_after(
        self, world: World
    ) -> None:
        member = world.member("viewer")
        (_, secret), (_, elsewhere) = (
            issue_token(member, "Key"),
            issue_token(world.member("operator"), "Other"),
        )
        client = open_link(create_reset_link(world, "viewer"))
        assert "revokes its API tokens in Acme" in client.get("/new-password/").content.decode()
        assert authenticate_token(secret) == member
        response = client.post(
            "/new-password/", {"password": PASSWORD, "again": PASSWORD}, follow=True
        )
        assert "Your API tokens in Acme are revoked." in response.content.decode()
        assert authenticate_token(secret) is None
        assert authenticate_token(elsewhere) is not None
        assert AuditEntry.objects.get(action="password_reset").payload["api_tokens_revoked"] == [
            "Key"
        ]

    def test_can_be_used_once_and_only_with_the_newest_link(self, world: World) -> None:
        first, second = (create_reset_link(world, "viewer") for _ in range(2))
        assert nobody().get(first).status_code == 404
        client, other = open_link(second), open_link(second)
        sent = {"password": PASSWORD, "again": PASSWORD}
        assert [
            browser.post("/new-password/", sent).status_code for browser in (client, other)
        ] == [302, 404]

    @pytest.mark.parametrize("end", ["expired", "removed", "joined elsewhere", "maker demoted"])
    def test_stops_working_once_the_link_expires_or_a_membership_changes(
        self, world: World, end: str
    ) -> None:
        link = create_reset_link(world, "viewer")
        client = open_link(link)
        if end == "expired":
            PasswordReset.objects.update(expires_at=Now() - timedelta(seconds=1))
        elif end == "removed":
            world.member("viewer").delete()
        elif end == "joined elsewhere":
            Membership.objects.create(organization=world.globex, user=world.users["viewer"])
        else:
            Membership.objects.filter(user=world.users["admin"]).update(role=Role.APPROVER)
        assert nobody().get(link).status_code == 404
        assert (
            client.post("/new-password/", {"password": PASSWORD, "again": PASSWORD}).status_code
            == 404
        )
        assert not User.objects.get(username="viewer").check_password(PASSWORD)

    def test_is_refused_for_accounts_with_rights_in_other_organizations(self, world: World) -> None:
        Membership.objects.create(organization=world.acme, user=world.users["outsider"])
        root = User.objects.create_superuser("root")
        theirs, roots = (
            Membership.objects.get(organization=world.acme, user=world.users["outsider"]),
            Membership.objects.create(organization=world.acme, user=root),
        )
        for member in (theirs, roots, world.member("admin")):
            with pytest.raises(Forbidden):
                members.create_password_reset(world.member("admin"), member.pk)
        Membership.objects.filter(pk=roots.pk).update(role=Role.ADMIN)
        world.users["root"] = root
        _, secret = members.create_password_reset(world.member("root"), theirs.pk)
        assert members.find_open_reset(hash_secret(secret)).membership == theirs

    def test_returns_404_for_an_invalid_link(self) -> None:
        for path in ("/join/x/", "/new-password/x/", "/new-password/", f"/join/{'y' * 5000}/"):
            assert nobody().get(path).status_code == 404
        with pytest.raises(NotFound):
            members.find_open_reset("")


class TestAPasswordChange:
    PATH = "/account/password/"

    def open_browser(self, world: World) -> Client:
        """Return a browser in which the viewer, whose password is PASSWORD, is logged in."""
        world.users["viewer"].set_password(PASSWORD)
        world.users["viewer"].save()
        return world.client("viewer")

    def test_keeps_this_session_and_ends_all_other_sessions(self, world: World) -> None:
        client = self.open_browser(world)
        elsewhere = world.client("viewer")
        assert f'href="{self.PATH}"' in read_page(client, "/")
        read_page(client, self.PATH)
        sent = {
            "old_password": PASSWORD,
            "new_password1": PASSWORD + "!",
            "new_password2": PASSWORD + "!",
        }
        assert client.post(self.PATH, sent)["Location"] == "/"
        assert "Your password was changed." in read_page(client, "/")
        assert elsewhere.get("/").status_code == 302
        assert User.objects.get(username="viewer").check_password(PASSWORD + "!")
        entry = AuditEntry.objects.get()
        assert (entry.actor, entry.action) == ("user:viewer", "password_changed")
        assert PASSWORD not in str(entry.payload)
        assert "changed their own password" in read_page(world.client("admin"), "/audit/")

    @pytest.mark.parametrize(
        ("old", "new", "again"),
        [
            ("wrong", PASSWORD + "!", PASSWORD + "!"),
            (PASSWORD, "short", "short"),
            (PASSWORD, PASSWORD + "!", PASSWORD),
        ],
    )
    def test_is_refused_with_an_error_if_the_form_is_invalid(
        self, world: World, old: str, new: str, again: str
    ) -> None:
        client = self.open_browser(world)
        response = client.post(
            self.PATH, {"old_password": old, "new_password1": new, "new_password2": again}
        )
        assert response.status_code == 422
        assert 'role="alert"' in response.content.decode()
        assert User.objects.get(username="viewer").check_password(PASSWORD)
        assert client.get("/").status_code == 200
        assert not AuditEntry.objects.exists()

    def test_allows_a_limited_number_of_wrong_old_passwords(self, world: World) -> None:
        client = self.open_browser(world)
        sent = {"new_password1": PASSWORD + "!", "new_password2": PASSWORD + "!"}
        responses = [
            client.post(self.PATH, {"old_password": "wrong", **sent}).status_code for _ in range(9)
        ]
        assert responses == [422] * 8 + [429]
        assert client.post(self.PATH, {"old_password": PASSWORD, **sent}).status_code == 429

    def test_does_not_count_a_weak_new_password_as_a_failed_attempt(self, world: World) -> None:
        client = self.open_browser(world)
        sent = {"old_password": PASSWORD, "new_password1": "short", "new_password2": "short"}
        assert {client.post(self.PATH, sent).status_code for _ in range(10)} == {422}
