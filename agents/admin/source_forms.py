"""The forms of sources, one for each kind, with only the fields of that kind."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from agents.accounts.models import Credential
from agents.admin.fields import FIELD_NAME, LinesField
from agents.admin.hosts import PrivateNetworkForm, describe_private_access, refuse_unreachable
from agents.employees.toolboxes import get_installed_toolbox
from tools.connections.changes import is_private_allowed
from tools.connections.models import AuthenticationMethod, Source, SourceKind
from tools.connections.servers import check_base_url
from tools.contract import ToolError
from tools.network import get_host, read_url
from tools.sources import SHIPPED_CATEGORIES

LARGEST_DOCUMENT = 20_000_000
ADDRESSES = ("address", "base_url", "token_url")
AUTHENTICATION = ("authentication", "key_place", "key_name", "token_url", "scopes", "service")
REFRESH_FIELDS = frozenset(
    {
        *ADDRESSES,
        *AUTHENTICATION,
        "file",
        "may_be_private",
        "command_line",
        "variables",
        "is_active",
    }
)
"""The fields that decide which server is contacted with which credentials. If one of them changes,
the source's description is read again."""
VISIBILITY_CONDITIONS = {
    name: f"typeof authentication === 'undefined' || {condition}"
    for name, condition in {
        "key_place": "authentication === 'api_key'",
        "key_name": "authentication === 'api_key'",
        "token_url": "authentication === 'oauth2'",
        "scopes": "authentication === 'oauth2'",
        "service": "authentication !== 'none'",
    }.items()
}
"""The conditions under which the page's script shows a field; without scripts, all fields are
shown."""
REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    AuthenticationMethod.API_KEY: ("key_name",),
    AuthenticationMethod.OAUTH2: ("token_url",),
}
"""Required fields of each kind of authentication."""
SERVICE_HELP = (
    "Name under which the organization's credentials are stored. Leave empty to use the source's name. "
    "After saving, this page names missing credentials and links to their form."
)


class SourceForm(PrivateNetworkForm):
    """The base form for sources, with the fields that all kinds share. The page sets `kind`, and
    shows `summary` where people choose a kind."""

    kind = SourceKind.OPENAPI
    summary = ""

    service = forms.CharField(
        label="Credentials service",
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=SERVICE_HELP,
    )
    may_be_private = forms.BooleanField(
        label="Allow private networks",
        required=False,
        widget=UnfoldBooleanWidget,
        help_text="For a server of your own, e.g. at 10.0.0.5 or on this machine. "
        "Applies to all tools of the organization. Needs a superuser or the setting ALLOWED_PRIVATE_HOSTS.",
    )

    class Meta:
        model = Source
        fields: tuple[str, ...] = ("organization", "name", "timeout_s", "is_active")
        help_texts = {
            "name": "Prefix of its tools' names, e.g. crm for crm.listContacts. Cannot be changed later."
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["may_be_private"] = is_private_allowed(self.instance)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        installed = get_installed_toolbox()
        names = [*(tool.name for tool in installed.tools()), *installed.policy.withheld]
        if name in SHIPPED_CATEGORIES | {each.partition(".")[0] for each in names}:
            raise forms.ValidationError(
                f"Built-in tools already use the prefix {name!r}. Choose another name."
            )
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self.instance.kind = self.kind
        for field in ADDRESSES:
            if cleaned.get(field):
                self._check_address(field, cleaned[field])
        if cleaned.get("may_be_private") and not self.errors:
            self.refuse_private(
                _list_hosts(cleaned), self._find_private_hosts(cleaned, opened_by_superuser=True)
            )
        for field in REQUIRED_FIELDS.get(cleaned.get("authentication", ""), ()):
            if field in self.fields and not cleaned.get(field):
                self.add_error(field, "This kind of authentication requires this field.")
        return cleaned

    def _check_address(self, field: str, address: str) -> None:
        try:
            (check_base_url if field == "base_url" else read_url)(address)
            refuse_unreachable(get_host(read_url(address)))
        except ToolError as error:
            self.add_error(field, error.message)
        except forms.ValidationError as error:
            self.add_error(field, error)

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """List newly opened private hosts, and credentials that are sent to another host."""
        hosts = _list_hosts(cleaned)
        changed_targets = {*ADDRESSES, "authentication", "service"} & set(self.changed_data)
        if cleaned.get("may_be_private"):
            opened = self._find_private_hosts(
                cleaned, **({"opened_by_superuser": True} if self.by_superuser else {})
            )
            yield from map(describe_private_access, sorted(set(hosts) - opened))
        is_signed = self.instance.authentication != AuthenticationMethod.NONE
        if self.instance.pk and changed_targets and hosts and is_signed:
            service, where = self.instance.credentials_service, ", ".join(hosts)
            if self._has_credentials(cleaned):
                yield f"From now on, the credentials of {service} are sent to {where}."
            else:
                yield f"The credentials of {service} will be sent to {where} once they are entered."

    def _find_private_hosts(self, cleaned: dict[str, Any], **more: bool) -> set[str]:
        """Return the form's hosts to which private access is already allowed."""
        owner = cleaned.get("organization") or self.instance.organization
        opened = owner.allowed_hosts.filter(
            host__in=_list_hosts(cleaned), may_be_private=True, **more
        )
        return set(opened.values_list("host", flat=True))

    def _has_credentials(self, cleaned: dict[str, Any]) -> bool:
        owner = cleaned.get("organization") or self.instance.organization
        return Credential.objects.filter(
            organization=owner, service=self.instance.credentials_service
        ).exists()


def _list_hosts(cleaned: dict[str, Any]) -> list[str]:
    """List the hosts of a valid form's addresses."""
    return sorted({get_host(read_url(cleaned[name])) for name in ADDRESSES if cleaned.get(name)})


class OpenAPIForm(SourceForm):
    """The form for an HTTP API: its description, the address of its operations, and the
    authentication of its requests."""

    write_only_fields = ("file",)
    kind = SourceKind.OPENAPI
    summary = "Each operation that you enable becomes a tool."

    address = forms.CharField(
        label="Description address",
        required=False,
        max_length=1_000,
        widget=UnfoldAdminTextInputWidget,
        help_text="OpenAPI 3.1, 3.0 or Swagger 2.0, as JSON or YAML, e.g. https://api.example.com/openapi.json.",
    )
    file = forms.FileField(
        label="Description file", required=False, help_text="Instead of an address."
    )

    class Meta(SourceForm.Meta):
        fields = (*SourceForm.Meta.fields, "address", "base_url", *AUTHENTICATION)
        help_texts = {
            **SourceForm.Meta.help_texts,
            "base_url": "e.g. https://api.example.com/v2. Leave empty to use the first server in the description. "
            "With authentication, that must be the server that hosts the description.",
            "key_place": "Only for an API key.",
            "key_name": "Only for an API key: the name of the header, parameter, cookie or field, e.g. X-API-Key.",
            "token_url": "Only for OAuth 2, e.g. https://login.example.com/oauth/token.",
            "scopes": "Only for OAuth 2, separated by spaces.",
        }

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file is not None and file.size > LARGEST_DOCUMENT:
            raise forms.ValidationError(
                f"The file has {file.size:,} bytes. Upload at most {LARGEST_DOCUMENT:,}."
            )
        return file

    def clean(self) -> dict[str, Any]:
        """Require a description for the source, by address or as a file, but not both."""
        cleaned = super().clean() or {}
        if cleaned.get("file") is not None and cleaned.get("address"):
            self.add_error("file", "Enter an address or choose a file, not both.")
        elif cleaned.get("file") is not None:
            try:
                self.instance.document = cleaned["file"].read().decode()
            except UnicodeDecodeError:
                self.add_error(
                    "file", "The file is not UTF-8 text. Save it as UTF-8 and try again."
                )
        elif (
            not cleaned.get("address")
            and not self.instance.document
            and "address" not in self.errors
        ):
            self.add_error("address", "Enter the address of the description, or choose its file.")
        return cleaned


class McpHttpForm(SourceForm):
    """The form for an MCP server over HTTP."""

    kind = SourceKind.MCP_HTTP
    summary = "Each of its tools stays in quarantine until you choose its level."

    address = forms.CharField(
        max_length=1_000,
        widget=UnfoldAdminTextInputWidget,
        help_text="e.g. https://mcp.example.com/mcp",
    )
    authentication = forms.ChoiceField(
        choices=[
            (kind.value, kind.label)
            for kind in (
                AuthenticationMethod.NONE,
                AuthenticationMethod.BEARER,
                AuthenticationMethod.API_KEY,
                AuthenticationMethod.BASIC,
            )
        ],
        widget=UnfoldAdminSelectWidget,
    )

    class Meta(SourceForm.Meta):
        fields = (*SourceForm.Meta.fields, "address", "authentication", "service", "key_name")
        help_texts = {
            **SourceForm.Meta.help_texts,
            "key_name": "Only for an API key: its header, e.g. X-API-Key.",
        }


class McpStdioForm(SourceForm):
    """The form for an MCP server that is a program on this machine; each worker starts the program
    on demand."""

    kind = SourceKind.MCP_STDIO
    summary = "Gadget starts the program. Each of its tools stays in quarantine until you choose its level."

    command_line = forms.CharField(
        label="Command",
        max_length=1_000,
        widget=UnfoldAdminTextInputWidget,
        help_text="As in a shell, but without pipes and variables, e.g. "
        "uvx mcp-server-time --local-timezone Europe/Berlin.",
    )
    variables = LinesField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="Environment variables filled from the credentials, one VARIABLE=field per line, "
        "e.g. GITHUB_TOKEN=token. Besides these, the program gets only HOME and PATH.",
    )

    class Meta(SourceForm.Meta):
        fields = (*SourceForm.Meta.fields, "service")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.pop("may_be_private")
        self.initial["command_line"] = shlex.join(self.instance.command)
        self.initial["variables"] = [
            f"{name}={field}" for name, field in self.instance.environment.items()
        ]

    def clean_command_line(self) -> str:
        line: str = self.cleaned_data["command_line"]
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise forms.ValidationError(f"This is not a valid command: {error}.") from error
        self.instance.command = words
        return line

    def clean_variables(self) -> list[str]:
        lines: list[str] = self.cleaned_data["variables"]
        pairs = [line.partition("=") for line in lines]
        if bad := [
            name
            for name, _, field in pairs
            if not (name.isidentifier() and FIELD_NAME.fullmatch(field))
        ]:
            raise forms.ValidationError(
                f"{bad[0]!r} is not valid. Enter VARIABLE=field, with lowercase letters, digits and _ in the field."
            )
        self.instance.environment = {name: field for name, _, field in pairs}
        return lines

    def list_consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """List a new program, because it runs with Gadget's rights, and credentials that are passed
        to a program."""
        if "command_line" in self.changed_data:
            yield f"Gadget's workers run this program with their own rights: {cleaned['command_line']}"
        if (
            self.instance.pk
            and self.instance.environment
            and {"service", "variables"} & set(self.changed_data)
        ):
            since = "from now on" if self._has_credentials(cleaned) else "once they are entered"
            yield f"This program gets the credentials of {self.instance.credentials_service} {since}."


FORMS: dict[SourceKind, type[SourceForm]] = {
    SourceKind.OPENAPI: OpenAPIForm,
    SourceKind.MCP_HTTP: McpHttpForm,
    SourceKind.MCP_STDIO: McpStdioForm,
}


def build_fieldsets(
    kind: SourceKind, *, is_new: bool, may_save: bool
) -> list[tuple[str | None, dict[str, Any]]]:
    """Build the sections of a kind's form; the form of a saved source begins with the source's
    state.

    People who may not save the form see only the first section.
    """
    status = (
        ()
        if is_new
        else (
            "kind",
            "state",
            "title",
            "described_version",
            "checked_at",
            "refreshed_at",
            "import_log",
        )
    )
    head: tuple[str | None, dict[str, Any]] = (
        None,
        {"fields": ("organization", "name", *status, "is_active")},
    )
    if not may_save:
        return [head]
    where: dict[SourceKind, tuple[str, ...]] = {
        SourceKind.OPENAPI: ("address", "file", "base_url", "may_be_private", "timeout_s"),
        SourceKind.MCP_HTTP: ("address", "may_be_private", "timeout_s"),
        SourceKind.MCP_STDIO: ("command_line", "variables", "timeout_s"),
    }
    credentials: dict[SourceKind, tuple[str, ...]] = {
        SourceKind.OPENAPI: AUTHENTICATION,
        SourceKind.MCP_HTTP: ("authentication", "key_name", "service"),
        SourceKind.MCP_STDIO: ("service",),
    }
    return [
        head,
        ("Connection", {"fields": where[kind]}),
        ("Authentication", {"fields": credentials[kind]}),
    ]
