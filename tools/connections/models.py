"""Where an organisation's tools from outside come from, what they are, and which hosts may be reached."""

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tools.contract import Level

LONGEST_NAME = 30
LONGEST_KEY = 500


class SourceKind(models.TextChoices):
    """What describes the tools, and how they are reached."""

    OPENAPI = "openapi", "HTTP API with an OpenAPI description"
    MCP_HTTP = "mcp_http", "MCP server, over HTTP"
    MCP_STDIO = "mcp_stdio", "MCP server, a program on this machine"


class Authentication(models.TextChoices):
    """How a source's requests are signed; the values are in the organisation's credentials."""

    NONE = "none", "None"
    API_KEY = "api_key", "API key"
    BEARER = "bearer", "Bearer token"
    BASIC = "basic", "User name and password"
    OAUTH2 = "oauth2", "OAuth 2 client credentials"


class KeyPlace(models.TextChoices):
    """Where an API key goes."""

    HEADER = "header", "Header"
    QUERY = "query", "Query"
    COOKIE = "cookie", "Cookie"


class Source(models.Model):
    """One API or MCP server that an organisation has connected.

    Attributes:
        name: what its tools' names begin with, e.g. `crm` for `crm.listContacts`.
        address: where the description or the server is; empty for a program, or a description that was given as text.
        document: the text of an OpenAPI description as it was last read.
        base_url: where an OpenAPI's operations go; the admin's choice, whatever the description says.
        command: of a program, as a list of words.
        environment: of a program, {variable: field of the credentials}.
        service: the organisation's credentials that its requests get; empty: those named like the source.
        title, described_version: what the source says of itself.
        checked_at, problem: when it was last asked, and what was wrong then; empty: nothing.
        refreshed_at: when its description was last read.
        due_at: when a worker should read it, if it is of a kind that is read by itself, or was never read.
        told: what came of that, in words: what is new, what was left out and why, what an admin has to do.
    """

    organization = models.ForeignKey("accounts.Organization", models.CASCADE, related_name="sources", db_index=False)
    kind = models.CharField(max_length=10, choices=SourceKind)
    name = models.CharField(
        max_length=LONGEST_NAME,
        validators=[RegexValidator(r"\A[a-z][a-z0-9_]*\Z", "Small letters, digits and _, beginning with a letter.")],
    )
    address = models.CharField(max_length=1_000, blank=True, default="")
    document = models.TextField(blank=True, default="")
    base_url = models.CharField(max_length=1_000, blank=True, default="")
    command = models.JSONField(default=list, blank=True)
    environment = models.JSONField(default=dict, blank=True)
    authentication = models.CharField(max_length=7, choices=Authentication, default=Authentication.NONE)
    key_name = models.CharField(max_length=100, blank=True, default="")
    key_place = models.CharField(max_length=6, choices=KeyPlace, default=KeyPlace.HEADER)
    token_url = models.CharField(max_length=1_000, blank=True, default="")
    scopes = models.CharField(max_length=500, blank=True, default="")
    service = models.CharField(max_length=80, blank=True, default="")
    timeout_s = models.PositiveSmallIntegerField(
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text="Seconds that one call may take.",
    )
    is_active = models.BooleanField(default=True)
    title = models.CharField(max_length=200, blank=True, default="", editable=False)
    described_version = models.CharField(max_length=60, blank=True, default="", editable=False)
    problem = models.CharField(max_length=500, blank=True, default="", editable=False)
    told = models.CharField(max_length=2_000, blank=True, default="", editable=False)
    checked_at = models.DateTimeField(null=True, editable=False)
    refreshed_at = models.DateTimeField(null=True, editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="one_source_per_name"),
            models.CheckConstraint(condition=Q(kind__in=SourceKind.values), name="source_kind_is_known"),
            models.CheckConstraint(
                condition=Q(authentication__in=Authentication.values), name="source_authentication_is_known"
            ),
            models.CheckConstraint(condition=Q(key_place__in=KeyPlace.values), name="source_key_place_is_known"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def is_mcp(self) -> bool:
        return self.kind in (SourceKind.MCP_HTTP, SourceKind.MCP_STDIO)

    @property
    def leads_nowhere(self) -> bool:
        """An API of which neither its description nor an admin says where its operations go."""
        return self.kind == SourceKind.OPENAPI and not self.base_url

    @property
    def credentials_service(self) -> str:
        return self.service or self.name


class SourceTool(models.Model):
    """One operation of a source, as it was described when the source was last read.

    It can be granted and called while it is chosen, still described, and what an admin has accepted is what it is.

    Attributes:
        key: what the source calls it: `GET /pets/{id}`, or the name of an MCP tool.
        tool: the name of the tool, e.g. `crm.listContacts`; it stays, whatever the source calls its others.
        definition: what the tool is made from, as JSON.
        hash: of the definition.
        accepted_hash: of the definition to which an admin has given a level; empty: none. Another one is quarantined.
        accepted_definition: the one that was accepted last, kept while the source describes another; empty: none is.
        inferred_level: what the description suggests.
        level: what an admin has set; empty: the inferred one.
        gone_at: since when the source describes it no more.
    """

    source = models.ForeignKey(Source, models.CASCADE, related_name="tools", db_index=False)
    key = models.CharField(max_length=LONGEST_KEY)
    tool = models.CharField(max_length=120)
    title = models.CharField(max_length=200, blank=True, default="")
    tags = models.JSONField(default=list, blank=True)
    definition = models.JSONField()
    hash = models.CharField(max_length=64)
    accepted_hash = models.CharField(max_length=64, blank=True, default="")
    accepted_definition = models.JSONField(default=dict, blank=True)
    inferred_level = models.CharField(max_length=11)
    level = models.CharField(max_length=11, blank=True, default="")
    is_chosen = models.BooleanField(default=False)
    gone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("key",)
        constraints = (
            models.UniqueConstraint(fields=("source", "key"), name="one_tool_per_key"),
            models.UniqueConstraint(fields=("source", "tool"), name="one_key_per_tool"),
            models.CheckConstraint(
                condition=Q(level__in=("", *(each.value for each in Level))), name="source_tool_level_is_known"
            ),
            models.CheckConstraint(
                condition=Q(inferred_level__in=[each.value for each in Level]), name="source_tool_inferred_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.tool

    @property
    def effective_level(self) -> Level:
        return Level(self.level or self.inferred_level)

    @property
    def is_quarantined(self) -> bool:
        return self.hash != self.accepted_hash

    @property
    def state(self) -> str:
        """In one word, for people: offered, quarantined, not chosen, gone."""
        if self.gone_at is not None:
            return "gone"
        if not self.is_chosen:
            return "not chosen"
        return "quarantined" if self.is_quarantined else "offered"


class AllowedHost(models.Model):
    """An admin's settings for a host that tools may want to reach.

    Attributes:
        host: in lower case, IDNA form, without a port.
        without_card: reading tools may go there without asking a person, wherever their params lead them.
        may_be_private: whether it may lie in a network that is not public, such as this machine's own.
        opened_by_superuser: a superuser allowed that; an admin's tick holds only for servers in ALLOWED_PRIVATE_HOSTS.
    """

    organization = models.ForeignKey(
        "accounts.Organization", models.CASCADE, related_name="allowed_hosts", db_index=False
    )
    host = models.CharField(max_length=253)
    without_card = models.BooleanField(
        "without a card",
        default=True,
        help_text="Reading tools may go there without asking, including tools you have connected. "
        "A source's own address needs no tick here.",
    )
    may_be_private = models.BooleanField(
        "may be in a private network",
        default=False,
        help_text="Addresses such as 10.0.0.5, 192.168.1.2 or this machine itself. Needs a superuser or the setting "
        "ALLOWED_PRIVATE_HOSTS.",
    )
    opened_by_superuser = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("host",)
        constraints = (models.UniqueConstraint(fields=("organization", "host"), name="one_row_per_host"),)

    def __str__(self) -> str:
        return self.host
