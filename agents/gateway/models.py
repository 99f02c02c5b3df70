"""Keys of agents that run elsewhere, the runs in which they call tools of Gadget, and their
asks."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.accounts.models.organization import DECIDERS, Membership, Organization, Role
from agents.employees.models.employee import Employee
from agents.platform.encrypted_fields import EncryptedTextField
from agents.runs.models.run import Run

KEY_OWNERS = (Role.OPERATOR.value, *DECIDERS)
"""The roles whose members may have keys; these are the roles that may start a run."""


class AgentKey(models.Model):
    """A key with which an agent that runs elsewhere acts as an employee, for one member; only its
    SHA-256 is stored.

    Attributes:
        membership: the member that it acts for; None once that member has left.
        employee: the employee whose tools the agent may use.
        ending: the last characters of the key, which help people to tell keys apart.
        revoked_by: the username of the person who revoked it.
        keeps_open: True if an admin chose to keep the calls and asks of the revoked key open.
    """

    membership = models.ForeignKey(
        Membership, on_delete=models.SET_NULL, null=True, related_name="agent_keys"
    )
    employee = models.ForeignKey(Employee, on_delete=models.CASCADE, related_name="agent_keys")
    name = models.CharField(max_length=80)
    hash = models.CharField(max_length=64, unique=True, editable=False)
    ending = models.CharField(max_length=4)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=150, blank=True)
    keeps_open = models.BooleanField(default=False)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.name

    @classmethod
    def usable(cls) -> models.QuerySet["AgentKey"]:
        """Select the keys that work now: not revoked, not expired, and of a member who may start
        runs."""
        owners = {"membership__user__is_active": True, "membership__role__in": KEY_OWNERS}
        return cls._default_manager.filter(revoked_at=None, expires_at__gt=Now(), **owners)


class AgentSession(models.Model):
    """A client's MCP session, in revisions of the protocol that have sessions.

    Attributes:
        session_id: the id that the server gave the client.
    """

    key = models.ForeignKey(AgentKey, on_delete=models.CASCADE, related_name="sessions")
    session_id = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"session {self.pk}"


class AgentRun(models.Model):
    """A run whose calls come from a remote agent with its key, not from a model.

    Attributes:
        session: the session that the run belongs to; None for a client without a session, and for
            an ask.
    """

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="agent_run"
    )
    key = models.ForeignKey(
        AgentKey, on_delete=models.CASCADE, related_name="agent_runs", db_index=False
    )
    session = models.ForeignKey(
        AgentSession, on_delete=models.SET_NULL, null=True, related_name="agent_runs"
    )

    class Meta:
        ordering = ("-run_id",)
        indexes = (models.Index(fields=("key", "-run"), name="runs_of_agent_key"),)

    def __str__(self) -> str:
        return f"run {self.run_id} of key {self.key_id}"

    @classmethod
    def without_key(cls) -> models.QuerySet["AgentRun"]:
        """Select the runs of keys that no longer work, except those that an admin keeps open."""
        ended = ~Q(key__in=AgentKey.usable()) & Q(key__keeps_open=False)
        return cls._default_manager.filter(ended)


class AskedEffect(models.Model):
    """The business effect that asks about one action name, such as `refund:4711`. Its row is locked
    while such an ask is created.

    Attributes:
        action: the folded name of the action, which all its spellings share.
    """

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    action = models.CharField(max_length=100)
    key = models.CharField(max_length=200)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("organization", "action", "key"), name="one_row_per_effect"
            ),
        )

    def __str__(self) -> str:
        return f"{self.action}: {self.key}"


class Ask(models.Model):
    """An agent's request for approval of an action that it carries out itself: a run with one call,
    whose card people decide.

    Attributes:
        action: the name of the action, for which the organization may set a level.
        audience: the verifier of the receipt, in the agent's words.
        effect: the business effect that the ask names; None if it names none.
        redeemed_at: the time when the agent used the approval, which it can do once; None if it has
            not.
        reported_at: the time when the agent reported the outcome; None if it has not.
        last_asked_at: the time when the agent last sent the ask or looked up its state.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="ask")
    key = models.ForeignKey(AgentKey, on_delete=models.CASCADE, related_name="asks", db_index=False)
    action = models.CharField(max_length=100)
    audience = models.CharField(max_length=200, blank=True)
    effect = models.ForeignKey(
        AskedEffect, on_delete=models.PROTECT, null=True, related_name="asks"
    )
    redeemed_at = models.DateTimeField(null=True)
    reported_at = models.DateTimeField(null=True)
    last_asked_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("key", "-id"), name="asks_of_agent_key"),)

    def __str__(self) -> str:
        return f"{self.action} ({self.pk})"


class RefusedAsk(models.Model):
    """An ask that was refused because another ask about the same effect was open. People see it on
    the card of that other ask."""

    ask = models.ForeignKey(Ask, on_delete=models.CASCADE, related_name="refused")
    key = models.ForeignKey(AgentKey, on_delete=models.CASCADE, related_name="+")
    params = models.JSONField()
    refused_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"refused beside ask {self.ask_id}"


class SigningKey(models.Model):
    """A key pair for signing receipts. The public key is still served for a while after another key
    pair replaces this one.

    Attributes:
        private: Ed25519, 32 bytes in hexadecimal; encrypted.
        public: 32 bytes as base64url.
        is_current: True for the one key that signs now.
        retired_at: the time when another key replaced this one.
    """

    key_id = models.CharField(max_length=16, unique=True)
    private = EncryptedTextField()
    public = models.CharField(max_length=64)
    is_current = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("is_current",), condition=Q(is_current=True), name="one_key_signs_receipts"
            ),
        )

    def __str__(self) -> str:
        return self.key_id
