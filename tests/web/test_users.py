"""Users: admins invite, change, remove and help members, but cannot find out who has an account."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models import TextField
from django.db.models.functions import Cast, Now
from django.test import Client
from pytest_django import Settings

from agents.accounts import invitations, members
from agents.accounts.membership import authenticate_token, hash_secret, issue_token
from agents.accounts.models import AuditEntry, Invitation, Membership, Role
from agents.notices.models import Channel
from agents.platform.refusals import Conflict, Forbidden
from agents.web.views.users import LINK_KEY
from tests.world import World, nobody

pytestmark = pytest.mark.django_db

PASSWORD = "correct-horse-battery"
FIELD = re.compile(
    r'<input type="hidden" name="(role|note|address|days|confirmed)" value="([^"]*)">'
)
LINK = re.compile(r'id="new-link" value="http://testserver([^"]+)"')


def read_page(client: Client, path: str = "/users/") -> str:
    response = client.get(path)
    assert response.status_code == 200, response.content
    return response.content.decode()


def invite(world: World, role: str = "operator", **more: str) -> str:
    """Create an invitation, and return the link that the page shows once."""
    admin = world.client("admin")
    return read_link(
        admin,
        post_confirmed(admin, "/users/invite/", {"role": role, "days": "7", "note": "Ada", **more}),
    )


def post_confirmed(client: Client, path: str, sent: dict[str, str]) -> Any:
    """Submit the form; if the page asks for a confirmation, confirm."""
    response = client.post(path, sent)
    asked = dict(FIELD.findall(response.content.decode()))
    return client.post(path, asked) if "confirmed" in asked else response


def read_link(client: Client, response: Any) -> str:
    """Return the link on the page to which the response redirects, after checking that the page
    shows it only once."""
    assert (response.status_code, response["Location"]) == (302, "/users/"), response.content
    found = LINK.search(read_page(client))
    assert found is not None
    assert not LINK.search(read_page(client))
    return found[1]


def create_reset_link(world: World, username: str, by: str = "admin") -> str:
    client = world.client(by)
    return read_link(client, client.post(f"/users/{world.member(username).pk}/password/"))


def open_link(link: str, client: Client | None = None) -> Client:
    """Open the link and its page, and return the browser."""
    client = client or nobody()
    response = client.get(link)
    assert response.status_code == 302, response.content
    assert client.get(response["Location"]).status_code == 200
    return client


def sign_up(client: Client, username: str, password: str = PASSWORD) -> Any:
    return client.post("/join/", {"username": username, "password": password, "again": password})


def actions(world: World) -> list[str]:
    return list(
        AuditEntry.objects.filter(organization=world.acme)
        .order_by("seq")
        .values_list("action", flat=True)
    )


class TestInvitations:
    def test_let_a_person_create_an_account_and_become_a_member(self, world: World) -> None:
        client = open_link(invite(world))
        assert "Acme" in read_page(client, "/join/")
        response = sign_up(client, "ada")
        assert (response.status_code, response["Location"]) == (302, "/")
        member = Membership.objects.get(user__username="ada")
        assert (member.organization, member.role, member.user.is_staff) == (
            world.acme,
            Role.OPERATOR,
            False,
        )
        assert member.user.check_password(PASSWORD)
        assert "Welcome to Acme" in read_page(client, "/")

    def test_never_store_the_secret(self, world: World) -> None:
        secret = invite(world).split("/")[2]
        row = Invitation.objects.get()
        assert row.hash == hash_secret(secret)
        kept = f"{vars(row)} {list(AuditEntry.objects.values('payload', 'subject'))}"
        assert secret not in kept
        client = open_link(f"/join/{secret}/")
        assert secret not in str(dict(client.session))
        assert secret not in read_page(world.client("admin"))

    def test_are_not_accepted_by_opening_the_link(self, world: World) -> None:
        link = invite(world)
        open_link(link, world.client("stranger"))
        open_link(link)
        assert Invitation.objects.get().accepted_at is None
        assert not world.users["stranger"].memberships.exists()

    def test_are_accepted_by_a_person_with_an_account_after_logging_in(self, world: World) -> None:
        world.users["stranger"].set_password(PASSWORD)
        world.users["stranger"].save()
        client = open_link(invite(world, "admin"))
        assert "/login/?next=/join/" in read_page(client, "/join/")
        response = client.post(
            "/login/", {"username": "stranger", "password": PASSWORD, "next": "/join/"}
        )
        assert response["Location"] == "/join/"
        assert "<bdi>stranger</bdi></strong></button>" in read_page(client, "/join/")
        assert client.post("/join/")["Location"] == "/"
        member = world.member("stranger")
        assert (member.organization, member.role) == (world.acme, Role.ADMIN)
        assert User.objects.get(username="stranger").is_staff

    def test_confirm_an_address_once_the_code_is_entered(
        self, world: World, settings: Settings
    ) -> None:
        settings.EMAIL_HOST = "mail.example.com"
        link = invite(world, address="ada@example.com")
        assert "ada@example.com" not in str(
            list(
                Invitation.objects.annotate(raw=Cast("address", TextField())).values_list(
                    "raw", flat=True
                )
            )
        )
        client = open_link(link)
        assert "ada@example.com" in client.get("/join/").content.decode()
        told = client.post(
            "/join/", {"username": "ada", "password": PASSWORD, "again": PASSWORD}, follow=True
        )
        assert "We sent a code to ada@example.com." in told.content.decode()
        channel = Channel.objects.get(membership__user__username="ada")
        assert (channel.address, channel.confirmed_at) == ("ada@example.com", None)
        client.post(f"/notices/channels/{channel.pk}/confirm/", {"code": channel.code})
        channel.refresh_from_db()
        assert channel.confirmed_at is not None

    def test_do_not_add_an_address_if_there_is_no_mail_server(
        self, world: World, settings: Settings
    ) -> None:
        settings.EMAIL_HOST, settings.GADGET_SHOWS_MESSAGES = "", False
        assert (
            sign_up(open_link(invite(world, address="ada@example.com")), "ada").status_code == 302
        )
        assert not Channel.objects.exists()

    def test_can_be_used_once(self, world: World) -> None:
        link = invite(world)
        first, second = open_link(link), open_link(link)
        assert sign_up(first, "ada").status_code == 302
        assert sign_up(second, "eve").status_code == 404
        assert nobody().get(link).status_code == 404
        assert not User.objects.filter(username="eve").exists()

    def test_can_be_accepted_by_a_member_of_another_organization(self, world: World) -> None:
        client = open_link(invite(world), world.client("outsider"))
        assert client.post("/join/").status_code == 302
        assert world.users["outsider"].memberships.count() == 2

    @pytest.mark.parametrize(
        "end", ["expired", "revoked", "demoted", "switched off", "removed", "left"]
    )
    def test_stop_working_when_they_expire_are_revoked_or_lose_their_inviter(
        self, world: World, end: str
    ) -> None:
        link = invite(world)
        client = open_link(link)
        admin = Membership.objects.filter(user=world.users["admin"])
        if end == "expired":
            Invitation.objects.update(expires_at=Now() - timedelta(seconds=1))
        elif end == "revoked":
            path = f"/users/invitations/{Invitation.objects.get().pk}/revoke/"
            assert world.client("admin").post(path).status_code == 302
            assert world.client("admin").post(path).status_code == 409
        elif end == "demoted":
            admin.update(role=Role.APPROVER)
        elif end == "switched off":
            User.objects.filter(username="admin").update(is_active=False)
        elif end == "left":
            admin.update(organization=world.globex)
        else:
            admin.delete()
        assert nobody().get(link).status_code == 404
        assert sign_up(client, "ada").status_code == 404
        assert not User.objects.filter(username="ada").exists()

    def test_do_not_change_the_role_of_an_existing_member(self, world: World) -> None:
        link = invite(world, "admin")
        client = open_link(link, world.client("viewer"))
        assert client.post("/join/").status_code == 409
        assert world.member("viewer").role == Role.VIEWER
        open_link(link)

    def test_do_not_allow_guessing_usernames(self, world: World) -> None:
        client = open_link(invite(world))
        tries = [sign_up(client, "OutSider").status_code for _ in range(invitations.MAX_TRIES)]
        assert set(tries) == {422}
        assert sign_up(client, "ada").status_code == 404

    @pytest.mark.parametrize(
        ("username", "password", "again"),
        [
            ("ada", "short", "short"),
            ("ada", PASSWORD, "another-one-here"),
            ("", PASSWORD, PASSWORD),
            ("a d a", PASSWORD, PASSWORD),
            ("ada\0", PASSWORD, PASSWORD),
            ("x" * 151, PASSWORD, PASSWORD),
            ("p\u0430ypal", PASSWORD, PASSWORD),
        ],
    )
    def test_do_not_create_an_account_with_an_invalid_username_or_password(
        self, world: World, username: str, password: str, again: str
    ) -> None:
        client = open_link(invite(world))
        before = User.objects.count()
        response = client.post(
            "/join/", {"username": username, "password": password, "again": again}
        )
        assert response.status_code == 422
        assert 'role="alert"' in response.content.decode()
        assert User.objects.count() == before
        assert sign_up(client, "ada").status_code == 302

    @pytest.mark.parametrize(
        "wrong", [{"role": "owner"}, {"days": "400"}, {"note": "x" * 121}, {"address": "ada"}]
    )
    def test_with_invalid_terms_are_refused_with_a_reason(
        self, world: World, wrong: dict[str, str]
    ) -> None:
        sent = {"role": "viewer", "days": "7", "note": "", **wrong}
        response = world.client("admin").post("/users/invite/", sent)
        assert response.status_code == 422
        assert 'role="alert"' in response.content.decode()
        assert not Invitation.objects.exists()

    def test_of_another_organization_return_404(self, world: World) -> None:
        invite(world)
        path = f"/users/invitations/{Invitation.objects.get().pk}/revoke/"
        assert world.client("outsider").post(path).status_code == 404
        assert Invitation.objects.get().revoked_at is None

    def test_have_pages_that_are_not_cached_and_need_a_csrf_token(self, world: World) -> None:
        link = invite(world)
        client = nobody(needs_csrf=True)
        assert "no-store" in client.get(link)["Cache-Control"]
        assert sign_up(client, "ada").status_code == 403
        assert nobody().get("/join/").status_code == 404


class TestASecretLink:
    def test_is_shown_once_on_a_page_that_can_be_reloaded(self, world: World) -> None:
        client = world.client("admin")
        response = client.post("/users/invite/", {"role": "operator", "days": "7", "note": "Ada"})
        assert client.head("/users/").status_code == 200, (
            "a HEAD request does not count as showing it"
        )
        assert "/join/" in read_link(client, response)
        assert Invitation.objects.count() == 1

    def test_is_encrypted_in_the_session(self, world: World) -> None:
        client = world.client("admin")
        response = client.post("/users/invite/", {"role": "operator", "days": "7", "note": "Ada"})
        kept = [str(one.get_decoded()) for one in Session.objects.all()]
        assert any(LINK_KEY in one for one in kept)
        secret = read_link(client, response).split("/")[-2]
        assert secret not in "".join(kept)
        assert LINK_KEY not in str([one.get_decoded() for one in Session.objects.all()])

    def test_is_not_shown_in_another_organization(self, world: World) -> None:
        Membership.objects.create(
            user=world.users["admin"], organization=world.globex, role=Role.ADMIN
        )
        client = world.client("admin")
        client.post(f"/users/{world.member('viewer').pk}/password/")
        client.post("/switch-organization/", {"organization": world.globex.pk})
        assert not LINK.search(read_page(client))

    def test_is_not_shown_to_a_former_admin(self, world: World) -> None:
        client = world.client("admin")
        client.post("/users/invite/", {"role": "operator", "days": "7", "note": "Ada"})
        Membership.objects.filter(user=world.users["admin"]).update(role=Role.VIEWER)
        assert not LINK.search(read_page(client))


class TestChangingRoles:
    def test_takes_effect_immediately(self, world: World) -> None:
        path = f"/users/{world.member('viewer').pk}/role/"
        assert post_confirmed(world.client("admin"), path, {"role": "admin"}).status_code == 302
        assert world.member("viewer").role == Role.ADMIN
        assert User.objects.get(username="viewer").is_staff
        assert post_confirmed(world.client("admin"), path, {"role": "operator"}).status_code == 302
        assert not User.objects.get(username="viewer").is_staff
        assert world.client("admin").post(path, {"role": "owner"}).status_code == 422

    def test_to_or_from_admin_needs_confirmation(self, world: World) -> None:
        client, path = world.client("admin"), f"/users/{world.member('viewer').pk}/role/"
        for role, told in (
            ("admin", "viewer can change everything here"),
            ("viewer", "viewer can no longer configure"),
        ):
            before = AuditEntry.objects.count()
            asked = client.post(path, {"role": role})
            assert asked.status_code == 200
            assert told in asked.content.decode()
            assert client.post(path, {"role": role, "confirmed": "yes"}).status_code == 200
            assert world.member("viewer").role != role
            assert AuditEntry.objects.count() == before
            assert post_confirmed(client, path, {"role": role}).status_code == 302
            assert world.member("viewer").role == role

    def test_also_needs_confirmation_if_a_new_member_is_invited_as_an_admin(
        self, world: World
    ) -> None:
        sent = {"role": "admin", "days": "1", "note": "Ada & <b>"}
        asked = world.client("admin").post("/users/invite/", sent)
        assert "Whoever opens the link first can change everything" in asked.content.decode()
        assert not Invitation.objects.exists()
        client = world.client("admin")
        link = read_link(client, post_confirmed(client, "/users/invite/", sent | {"note": "Ada"}))
        assert nobody().get(link).status_code == 302
        made = Invitation.objects.get()
        assert (made.role, made.note) == ("admin", "Ada")
        assert world.client("viewer").post("/users/invite/", sent).status_code == 403

    def test_does_not_delete_the_account_of_a_removed_member(self, world: World) -> None:
        _, secret = issue_token(world.member("operator"), "Key")
        assert (
            world.client("admin").post(f"/users/{world.member('operator').pk}/remove/").status_code
            == 302
        )
        assert world.client("operator").get("/").status_code == 403
        assert authenticate_token(secret) is None
        assert User.objects.filter(username="operator", is_active=True).exists()

    def test_cannot_demote_the_last_admin(self, world: World) -> None:
        own, client = world.member("admin"), world.client("admin")
        User.objects.filter(username="approver").update(is_active=False)
        Membership.objects.filter(user__username="approver").update(role=Role.ADMIN)
        assert (
            post_confirmed(client, f"/users/{own.pk}/role/", {"role": "viewer"}).status_code == 409
        )
        assert client.post(f"/users/{own.pk}/remove/").status_code == 409
        assert world.member("admin").role == Role.ADMIN

    def test_lets_an_admin_leave_if_another_admin_remains(self, world: World) -> None:
        Membership.objects.filter(user__username="approver").update(role=Role.ADMIN)
        assert (
            world.client("admin").post(f"/users/{world.member('admin').pk}/remove/")["Location"]
            == "/"
        )
        assert not world.users["admin"].memberships.exists()
        assert not User.objects.get(username="admin").is_staff

    def test_is_denied_to_a_demoted_admin(self, world: World) -> None:
        stale = world.member("admin")
        Membership.objects.filter(pk=stale.pk).update(role=Role.VIEWER)
        with pytest.raises(Forbidden):
            members.remove_member(stale, world.member("viewer").pk)
        with pytest.raises(Forbidden):
            invitations.invite(stale, invitations.Offer(role="admin"))

    def test_returns_404_for_a_member_of_another_organization(self, world: World) -> None:
        theirs = world.member("outsider").pk
        for act in ("role", "remove", "password"):
            assert (
                world.client("admin")
                .post(f"/users/{theirs}/{act}/", {"role": "viewer"})
                .status_code
                == 404
            )
        assert world.member("outsider").role == Role.ADMIN


def test_each_change_is_audited_without_secrets(world: World) -> None:
    admin = world.client("admin")
    joining = open_link(invite(world))
    sign_up(joining, "ada")
    invite(world)
    admin.post(f"/users/invitations/{Invitation.objects.get(accepted_at=None).pk}/revoke/")
    ada = Membership.objects.get(user__username="ada")
    admin.post(f"/users/{ada.pk}/role/", {"role": "viewer"})
    open_link(read_link(admin, admin.post(f"/users/{ada.pk}/password/"))).post(
        "/new-password/", {"password": PASSWORD + "!", "again": PASSWORD + "!"}
    )
    admin.post(f"/users/{ada.pk}/remove/")
    assert actions(world) == [
        "invitation_made",
        "invitation_accepted",
        "invitation_made",
        "invitation_revoked",
        "membership_changed",
        "password_link_made",
        "password_reset",
        "membership_deleted",
    ]
    assert PASSWORD not in str(list(AuditEntry.objects.values_list("payload", flat=True)))


def test_the_number_of_open_invitations_is_limited(world: World) -> None:
    Invitation.objects.bulk_create(
        Invitation(
            organization=world.acme,
            role="viewer",
            hash=f"{number:064}",
            made_by=world.users["admin"],
            expires_at=Now() + timedelta(days=1),
        )
        for number in range(invitations.MAX_OPEN)
    )
    with pytest.raises(Conflict):
        invitations.invite(world.member("admin"), invitations.Offer(role="viewer"))
