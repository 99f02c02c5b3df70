"""An organization's connected tool sources, their tools, and the hosts that tools may reach."""

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tools.contract import Level

MAX_NAME_LENGTH = 30
MAX_KEY_LENGTH = 500


class SourceKind(models.TextChoices):
    """The kind of a source: the format of its description and its protocol."""

    OPENAPI = "openapi", "HTTP API with an OpenAPI description"
    MCP_HTTP = "mcp_http", "MCP server over HTTP"
    MCP_STDIO = "mcp_stdio", "MCP server as a local program"


class AuthenticationMethod(models.TextChoices):
    """The authentication of a source's requests; the secrets are in the credentials."""

    NONE = "none", "None"
    API_KEY = "api_key", "API key"
    BEARER = "bearer", "Bearer token"
    BASIC = "basic", "User name and password"
    OAUTH2 = "oauth2", "OAuth 2 client credentials"


class KeyPlace(models.TextChoices):
    """The place of an API key in a request."""

    HEADER = "header", "Header"
    QUERY = "query", "Query parameter"
    COOKIE = "cookie", "Cookie"
    BODY = "body", "Field of the body"


class Source(models.Model):
    """One API or MCP server that an organization has connected.

    Attributes:
        name: the part of its tools' names before the dot, e.g. `crm` for `crm.listContacts`.
        address: the URL of the description or the server; empty for a program or an uploaded
            description.
        document: the text of an OpenAPI description, as last read.
        base_url: the base address of an API's operations, chosen by an admin; no description
            overrides it.
        command: the program and its arguments.
        environment: the program's variables, {variable: field of the credentials}.
        service: the name of the organization's credentials for its requests; empty for the source's
            own name.
        title, described_version: the title and version in the description.
        checked_at, problem: the time of the last check, and the problem that it found; empty if
            none.
        refreshed_at: when its description was last read.
        due_at: when a worker should read the description, if the source is refreshed automatically
            or was never read.
        told: the import log for an admin: what is new, what was left out and why, and what to do
            next.
    """

    organization = models.ForeignKey(
        "accounts.Organization", models.CASCADE, related_name="sources", db_index=False
    )
    kind = models.CharField(max_length=10, choices=SourceKind)
    name = models.CharField(
        max_length=MAX_NAME_LENGTH,
        validators=[
            RegexValidator(
                r"\A[a-z][a-z0-9_]*\Z",
                "Use lowercase letters, digits and _, starting with a letter.",
            )
        ],
    )
    address = models.CharField(max_length=1_000, blank=True, default="")
    document = models.TextField(blank=True, default="")
    base_url = models.CharField("address of operations", max_length=1_000, blank=True, default="")
    command = models.JSONField(default=list, blank=True)
    environment = models.JSONField(default=dict, blank=True)
    authentication = models.CharField(
        max_length=7, choices=AuthenticationMethod, default=AuthenticationMethod.NONE
    )
    key_name = models.CharField(max_length=100, blank=True, default="")
    key_place = models.CharField(
        "key location", max_length=6, choices=KeyPlace, default=KeyPlace.HEADER
    )
    token_url = models.CharField("token address", max_length=1_000, blank=True, default="")
    scopes = models.CharField(max_length=500, blank=True, default="")
    service = models.CharField(max_length=80, blank=True, default="")
    timeout_s = models.PositiveSmallIntegerField(
        "timeout (seconds)",
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text="Time limit for one call.",
    )
    is_active = models.BooleanField("active", default=True)
    title = models.CharField(max_length=200, blank=True, default="", editable=False)
    described_version = models.CharField(max_length=60, blank=True, default="", editable=False)
    problem = models.CharField(max_length=500, blank=True, default="", editable=False)
    told = models.CharField(max_length=2_000, blank=True, default="", editable=False)
    checked_at = models.DateTimeField("last tested", null=True, editable=False)
    refreshed_at = models.DateTimeField("last refreshed", null=True, editable=False)
    due_at = models.DateTimeField(db_default=Now(), editable=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "name"), name="one_source_per_name"),
            models.CheckConstraint(
                condition=Q(kind__in=SourceKind.values), name="source_kind_is_known"
            ),
            models.CheckConstraint(
                condition=Q(authentication__in=AuthenticationMethod.values),
                name="source_authentication_is_known",
            ),
            models.CheckConstraint(
                condition=Q(key_place__in=KeyPlace.values), name="source_key_place_is_known"
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def is_mcp(self) -> bool:
        return self.kind in (SourceKind.MCP_HTTP, SourceKind.MCP_STDIO)

    @property
    def lacks_base_url(self) -> bool:
        """True for an API without a base address for its operations."""
        return self.kind == SourceKind.OPENAPI and not self.base_url

    @property
    def credentials_service(self) -> str:
        return self.service or self.name


class SourceTool(models.Model):
    """A tool of a source, as it was described when the source was last read.

    It can be granted and called while it is chosen, the source still describes it, and its current
    definition is the accepted definition.

    Attributes:
        key: the source's own name for the tool: `GET /pets/{id}`, or the name of an MCP tool.
        tool: the name of the tool, e.g. `crm.listContacts`; it never changes, even if the source
            renames it.
        definition: the definition that the tool is built from, as JSON.
        title: the source's own title for the tool, as last described; it is not part of the
            definition, and never used as a name.
        accepted_title: the title that an admin accepted, shown as the source's own words; a new
            title is used only after an admin accepts it.
        hash: the hash of the definition.
        accepted_hash: the hash of the definition that an admin accepted; empty if no definition was
            accepted. With any other definition, the tool is quarantined.
        accepted_definition: the last accepted definition, while the source describes a different
            one; otherwise empty.
        inferred_level: the level that the description suggests.
        level: the level that an admin has set; empty if the inferred level applies.
        named_params, plain_params: the paths of params that an admin has declared to name
            something, such as a recipient or an amount, or to name nothing. A changed definition
            clears `plain_params`.
        gone_at: when the source stopped describing the tool.
    """

    source = models.ForeignKey(Source, models.CASCADE, related_name="tools", db_index=False)
    key = models.CharField(max_length=MAX_KEY_LENGTH)
    tool = models.CharField(max_length=120)
    title = models.CharField(max_length=200, blank=True, default="")
    accepted_title = models.CharField(max_length=200, blank=True, default="", db_default="")
    tags = models.JSONField(default=list, blank=True)
    definition = models.JSONField()
    hash = models.CharField(max_length=64)
    accepted_hash = models.CharField(max_length=64, blank=True, default="")
    accepted_definition = models.JSONField(default=dict, blank=True)
    inferred_level = models.CharField(max_length=11)
    level = models.CharField(max_length=11, blank=True, default="")
    named_params = models.JSONField(default=list, blank=True, db_default=[])
    plain_params = models.JSONField(default=list, blank=True, db_default=[])
    is_chosen = models.BooleanField(default=False)
    gone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("key",)
        constraints = (
            models.UniqueConstraint(fields=("source", "key"), name="one_tool_per_key"),
            models.UniqueConstraint(fields=("source", "tool"), name="one_key_per_tool"),
            models.CheckConstraint(
                condition=Q(level__in=("", *(each.value for each in Level))),
                name="source_tool_level_is_known",
            ),
            models.CheckConstraint(
                condition=Q(inferred_level__in=[each.value for each in Level]),
                name="source_tool_inferred_is_known",
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
    def has_waiting_title(self) -> bool:
        """True if the tool is offered, but its current title differs from the accepted title."""
        return self.state == "offered" and self.title != self.accepted_title

    @property
    def state(self) -> str:
        """The state: offered, quarantined, not chosen or gone."""
        if self.gone_at is not None:
            return "gone"
        if not self.is_chosen:
            return "not chosen"
        return "quarantined" if self.is_quarantined else "offered"


class AllowedHost(models.Model):
    """An admin's settings for a host that tools may reach.

    Attributes:
        host: in lower case, IDNA form, without a port.
        without_card: reading tools may reach the host without approval.
        may_be_private: the host may have a private address, such as this machine's own.
        opened_by_superuser: a superuser set `may_be_private`; if an admin set it, it covers only
            ALLOWED_PRIVATE_HOSTS.
    """

    organization = models.ForeignKey(
        "accounts.Organization", models.CASCADE, related_name="allowed_hosts", db_index=False
    )
    host = models.CharField(max_length=253)
    without_card = models.BooleanField(
        "reachable without approval",
        default=True,
        help_text="Read tools can reach the host without approval, including tools that you have connected. "
        "A source's own address needs no entry here.",
    )
    may_be_private = models.BooleanField(
        "private network allowed",
        default=False,
        help_text="For addresses such as 10.0.0.5, 192.168.1.2 or this machine. "
        "Needs a superuser or the setting ALLOWED_PRIVATE_HOSTS.",
    )
    opened_by_superuser = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("host",)
        constraints = (
            models.UniqueConstraint(fields=("organization", "host"), name="one_row_per_host"),
        )

    def __str__(self) -> str:
        return self.host
