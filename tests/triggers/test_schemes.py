"""Senders' proofs for each scheme: published examples, signatures by the standard's own library,
and proofs that are refused."""

from __future__ import annotations

import hmac
from base64 import b64encode
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from agents.triggers.models import Scheme
from agents.triggers.schemes import (
    TOLERANCE_S,
    TRAITS,
    Incoming,
    Proof,
    WrongSecret,
    check_secret,
    find_key,
    find_objection,
    make_secret,
)
from tests.features import feature
from tests.triggers.conftest import SECRET, sign

STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SLACK_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
NOW = 1_700_000_000
BODY = b'{"test": 1}'
TOKEN = "a token of 16 or more"

EXAMPLES = {
    Scheme.STANDARD: (
        Proof(STANDARD_SECRET),
        Incoming(
            {
                "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
                "webhook-timestamp": "1614265330",
                "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            },
            b'{"test": 2432232314}',
            1614265330,
        ),
    ),
    Scheme.GITHUB: (
        Proof(SECRET),
        Incoming(
            {
                "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
            },
            b"Hello, World!",
            NOW,
        ),
    ),
    Scheme.SLACK: (
        Proof(SLACK_SECRET),
        Incoming(
            {
                "x-slack-request-timestamp": "1531420618",
                "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
            },
            SLACK_BODY,
            1531420618,
        ),
    ),
    Scheme.GITLAB: (Proof(TOKEN), Incoming({"x-gitlab-token": TOKEN}, BODY, NOW)),
    Scheme.ALERTMANAGER: (Proof(TOKEN), Incoming({"authorization": f"Bearer {TOKEN}"}, BODY, NOW)),
    Scheme.HMAC: (
        Proof(TOKEN, "X-Signature"),
        Incoming({"x-signature": hmac.digest(TOKEN.encode(), BODY, "sha256").hex()}, BODY, NOW),
    ),
}
"""An authenticated request for each scheme; the first three are the providers' own examples."""
SIGN_BODY = (Scheme.STANDARD, Scheme.GITHUB, Scheme.SLACK, Scheme.HMAC)
SIGN_TIME = (Scheme.STANDARD, Scheme.SLACK)


def read_refusal(scheme: str, incoming: Incoming, proof: Proof) -> str:
    """Return the reason why the request is refused."""
    objection = find_objection(scheme, incoming, proof)
    assert objection is not None
    return objection.why


def changed(
    incoming: Incoming,
    body: bytes | None = None,
    now: float | None = None,
    headers: dict[str, str] | None = None,
) -> Incoming:
    return Incoming(
        {**incoming.headers, **(headers or {})},
        incoming.body if body is None else body,
        incoming.now if now is None else now,
    )


class TestPublishedExamples:
    @pytest.mark.parametrize("scheme", Scheme.values)
    def test_are_accepted(self, scheme: str) -> None:
        proof, incoming = EXAMPLES[Scheme(scheme)]
        assert find_objection(scheme, incoming, proof) is None

    @pytest.mark.parametrize("scheme", Scheme.values)
    def test_are_refused_with_another_secret(self, scheme: str) -> None:
        proof, incoming = EXAMPLES[Scheme(scheme)]
        assert "wrong" in read_refusal(scheme, incoming, Proof(make_secret(scheme), proof.header))

    @pytest.mark.parametrize("scheme", Scheme.values)
    def test_are_refused_without_a_proof(self, scheme: str) -> None:
        proof, incoming = EXAMPLES[Scheme(scheme)]
        assert find_objection(scheme, Incoming({}, incoming.body, incoming.now), proof) is not None

    @pytest.mark.parametrize("scheme", Scheme.values)
    @pytest.mark.parametrize(
        "noise", ["", "é", "v1", "v1,", "sha256=", "Bearer ", "\udcff", "0" * 64]
    )
    def test_are_refused_with_a_malformed_proof(self, scheme: str, noise: str) -> None:
        proof, incoming = EXAMPLES[Scheme(scheme)]
        assert (
            find_objection(
                scheme, changed(incoming, headers=dict.fromkeys(incoming.headers, noise)), proof
            )
            is not None
        )

    @pytest.mark.parametrize("scheme", SIGN_BODY)
    def test_are_refused_with_a_changed_body(self, scheme: str) -> None:
        proof, incoming = EXAMPLES[Scheme(scheme)]
        assert "wrong" in read_refusal(scheme, changed(incoming, body=incoming.body + b" "), proof)

    @pytest.mark.parametrize("scheme", SIGN_TIME)
    @pytest.mark.parametrize("distance", [-TOLERANCE_S - 1, TOLERANCE_S + 1])
    def test_are_refused_when_old_or_from_the_future(self, scheme: str, distance: int) -> None:
        proof, incoming = EXAMPLES[Scheme(scheme)]
        assert "5 minutes" in read_refusal(
            scheme, changed(incoming, now=incoming.now + distance), proof
        )
        just_in_time = changed(incoming, now=incoming.now + distance - (1 if distance > 0 else -1))
        assert find_objection(scheme, just_in_time, proof) is None

    @pytest.mark.parametrize("scheme", SIGN_TIME)
    def test_are_refused_with_a_time_that_differs_from_the_signed_time(self, scheme: str) -> None:
        proof, incoming = EXAMPLES[Scheme(scheme)]
        at = {name: str(NOW) for name in incoming.headers if name.endswith("timestamp")}
        assert "wrong" in read_refusal(scheme, changed(incoming, now=NOW, headers=at), proof)

    @feature(
        "Agents elsewhere",
        "Each scheme checks what it proves, and the page says what it does not",
        "agents/triggers/schemes.py",
    )
    def test_cover_every_scheme_that_signs_the_body_or_the_time(self) -> None:
        assert {scheme for scheme in Scheme.values if TRAITS[scheme].body == "signed"} == set(
            SIGN_BODY
        )
        assert {
            scheme for scheme in Scheme.values if TRAITS[scheme].age.startswith("signed")
        } == set(SIGN_TIME)


class TestStandardScheme:
    def sign(self, body: bytes, *secrets: str) -> dict[str, str]:
        """Return the headers that the standard's library creates for this body, with one signature
        for each secret."""
        at = datetime.fromtimestamp(NOW, UTC)
        signatures = " ".join(
            Webhook(secret).sign("msg_1", at, body.decode()) for secret in secrets
        )
        return {
            "webhook-id": "msg_1",
            "webhook-timestamp": str(NOW),
            "webhook-signature": signatures,
        }

    def test_accepts_the_librarys_signatures(self) -> None:
        secret = make_secret(Scheme.STANDARD)
        assert (
            find_objection(
                Scheme.STANDARD, Incoming(self.sign(BODY, secret), BODY, NOW), Proof(secret)
            )
            is None
        )

    def test_accepts_one_matching_signature_among_several(self) -> None:
        old, new = make_secret(Scheme.STANDARD), make_secret(Scheme.STANDARD)
        incoming = Incoming(self.sign(BODY, old, new), BODY, NOW)
        assert [
            find_objection(Scheme.STANDARD, incoming, Proof(secret)) for secret in (old, new)
        ] == [
            None,
            None,
        ]

    def test_ignores_a_signature_of_another_version(self) -> None:
        secret = make_secret(Scheme.STANDARD)
        headers = self.sign(BODY, secret)
        headers["webhook-signature"] = headers["webhook-signature"].replace("v1,", "v2,")
        assert "wrong" in read_refusal(Scheme.STANDARD, Incoming(headers, BODY, NOW), Proof(secret))

    def test_refuses_an_id_that_was_not_signed(self) -> None:
        secret = make_secret(Scheme.STANDARD)
        headers = {**self.sign(BODY, secret), "webhook-id": "msg_2"}
        assert "wrong" in read_refusal(Scheme.STANDARD, Incoming(headers, BODY, NOW), Proof(secret))

    @pytest.mark.parametrize(
        ("message_id", "at", "fault"),
        [
            ("msg_1", "soon", "not a number"),
            ("msg_1", "\u00b2", "not a number"),
            (
                "msg_1",
                "\u0661\u0667\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660",
                "not a number",
            ),
            ("msg_1", "", "are needed"),
            ("", str(NOW), "are needed"),
        ],
    )
    def test_refuses_a_message_without_an_id_or_with_a_time_that_is_not_a_number(
        self, message_id: str, at: str, fault: str
    ) -> None:
        secret = make_secret(Scheme.STANDARD)
        signed = f"{message_id}.{at}.".encode() + BODY
        key = Webhook(secret)._whsecret
        headers = {
            "webhook-id": message_id,
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}",
        }
        assert fault in read_refusal(Scheme.STANDARD, Incoming(headers, BODY, NOW), Proof(secret))


@pytest.mark.parametrize("kind", ["Basic", "Token", ""])
def test_a_token_of_another_kind_is_refused(kind: str) -> None:
    incoming = Incoming({"authorization": f"{kind} {TOKEN}"}, BODY, NOW)
    assert "wrong" in read_refusal(Scheme.ALERTMANAGER, incoming, Proof(TOKEN))


class TestHmacScheme:
    @pytest.mark.parametrize("form", ["hex", "upper", "prefixed", "base64"])
    def test_accepts_the_usual_forms_of_a_digest(self, form: str) -> None:
        digest = hmac.digest(TOKEN.encode(), BODY, "sha256")
        forms = {
            "hex": digest.hex(),
            "upper": digest.hex().upper(),
            "prefixed": f"sha256={digest.hex()}",
            "base64": b64encode(digest).decode(),
        }
        incoming = Incoming({"x-own": forms[form]}, BODY, NOW)
        assert find_objection(Scheme.HMAC, incoming, Proof(TOKEN, "X-Own")) is None


class TestKeysOfRepeats:
    @pytest.mark.parametrize(
        ("scheme", "header"),
        [
            ("standard", "webhook-id"),
            ("github", "x-github-delivery"),
            ("gitlab", "idempotency-key"),
        ],
    )
    def test_use_the_senders_id(self, scheme: str, header: str) -> None:
        one, other = (
            find_key(scheme, Incoming({header: value}, BODY, NOW), {}) for value in ("a", "b")
        )
        assert one[1]
        assert one != other
        assert one == find_key(scheme, Incoming({header: "a"}, b"another body", NOW), {})

    def test_use_the_id_in_the_body_of_a_message_from_slack(self) -> None:
        one, other = (
            find_key("slack", Incoming({}, BODY, NOW), {"event_id": value}) for value in ("a", "b")
        )
        assert one[1]
        assert one != other

    @pytest.mark.parametrize("payload", [{}, [], {"event_id": None}])
    @pytest.mark.parametrize("scheme", Scheme.values)
    def test_use_the_body_if_there_is_no_id(self, scheme: str, payload: object) -> None:
        one, other = (find_key(scheme, Incoming({}, body, NOW), payload) for body in (b"1", b"2"))
        assert not one[1]
        assert one != other


class TestSecrets:
    @pytest.mark.parametrize("scheme", Scheme.values)
    def test_that_are_generated_are_accepted_and_unique(self, scheme: str) -> None:
        check_secret(scheme, make_secret(scheme))
        assert make_secret(scheme) != make_secret(scheme)

    @pytest.mark.parametrize(
        "secret", ["", "too short", "x" * 201, "line\nbreak of a secret", "ümlaut in a secret"]
    )
    def test_that_are_invalid_are_refused(self, secret: str) -> None:
        with pytest.raises(WrongSecret):
            check_secret(Scheme.GITHUB, secret)

    def test_for_the_standard_scheme_must_be_base64(self) -> None:
        check_secret(Scheme.STANDARD, STANDARD_SECRET)
        check_secret(Scheme.STANDARD, "whsec_bm8gcGFkZGluZyBoZXJl")
        for wrong in ("whsec_not base64 at all!", "whsec_" + "=" * 20):
            with pytest.raises(WrongSecret, match="base64"):
                check_secret(Scheme.STANDARD, wrong)

    @pytest.mark.parametrize("length", [16, 200])
    def test_of_minimum_and_maximum_length_are_accepted(self, length: int) -> None:
        check_secret(Scheme.GITHUB, "x" * length)


def test_the_test_helper_signs_like_github() -> None:
    assert find_objection("github", Incoming(sign(BODY), BODY, NOW), Proof(SECRET)) is None


@feature(
    "Agents elsewhere", "Svix's headers prove who sent a message", "agents/triggers/schemes.py"
)
def test_svix_headers_prove_a_message_as_the_standards_headers_do() -> None:
    proof, incoming = EXAMPLES[Scheme.STANDARD]
    renamed = {name.replace("webhook-", "svix-"): value for name, value in incoming.headers.items()}
    through_svix = Incoming(renamed, incoming.body, incoming.now)
    assert find_objection(Scheme.STANDARD, through_svix, proof) is None
    assert find_key(Scheme.STANDARD, through_svix, {}) == find_key(Scheme.STANDARD, incoming, {})
    changed = Incoming({**renamed, "svix-id": "msg_other"}, incoming.body, incoming.now)
    assert find_objection(Scheme.STANDARD, changed, proof) is not None
    late = Incoming(renamed, incoming.body, incoming.now + TOLERANCE_S + 1)
    assert "5 minutes" in read_refusal(Scheme.STANDARD, late, proof)


def test_standard_and_svix_headers_are_never_mixed() -> None:
    proof, incoming = EXAMPLES[Scheme.STANDARD]
    renamed = {name.replace("webhook-", "svix-"): value for name, value in incoming.headers.items()}
    forged = Incoming(
        {**renamed, "webhook-id": "a new id for a message that was proved"},
        incoming.body,
        incoming.now,
    )
    assert find_objection(Scheme.STANDARD, forged, proof) is not None, (
        "its id would make a second run"
    )
