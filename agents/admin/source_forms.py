"""The forms of sources: one for each kind, with what that kind needs and nothing else."""

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
from agents.employees.toolboxes import installed_toolbox
from tools.connections.changes import is_private
from tools.connections.models import Authentication, Source, SourceKind
from tools.connections.servers import check_base_url
from tools.contract import ToolError
from tools.network import host_of, read_url

from .fields import FIELD_NAME, LinesField
from .hosts import PrivateNetworkForm, private_network, refuse_unreachable

LARGEST_DOCUMENT = 20_000_000
ADDRESSES = ("address", "base_url", "token_url")
AUTHENTICATION = ("authentication", "key_place", "key_name", "token_url", "scopes", "service")
READ_ANEW_IF = frozenset(
    {*ADDRESSES, *AUTHENTICATION, "file", "may_be_private", "command_line", "variables", "is_active"}
)
"""Fields that say where a source is and who asks it: with another value, it may describe something else."""
SHOWN_IF = {
    name: f"typeof authentication === 'undefined' || {condition}"
    for name, condition in {
        "key_place": "authentication === 'api_key'",
        "key_name": "authentication === 'api_key'",
        "token_url": "authentication === 'oauth2'",
        "scopes": "authentication === 'oauth2'",
        "service": "authentication !== 'none'",
    }.items()
}
"""When a field is of use, for the page's script; without scripts all are shown, and say so themselves."""
NEEDED: dict[str, tuple[str, ...]] = {Authentication.API_KEY: ("key_name",), Authentication.OAUTH2: ("token_url",)}
"""What a kind of authentication cannot do without."""
SERVICE_HELP = (
    "The service under which the organisation keeps them. Empty: the name of the source. "
    "Once this is saved, you are told which fields are missing, with a link to their form."
)


class SourceForm(PrivateNetworkForm):
    """What all kinds have. `kind` is set by the page, `told` says what the kind is for."""

    kind = SourceKind.OPENAPI
    told = ""

    service = forms.CharField(
        label="Service of its credentials", required=False, widget=UnfoldAdminTextInputWidget, help_text=SERVICE_HELP
    )
    may_be_private = forms.BooleanField(
        label="It may be in a private network",
        required=False,
        widget=UnfoldBooleanWidget,
        help_text="Tick this for a server of your own, e.g. at 10.0.0.5 or on this machine. "
        "It applies to all tools of the organization, and needs a superuser or ALLOWED_PRIVATE_HOSTS.",
    )

    class Meta:
        model = Source
        fields: tuple[str, ...] = ("organization", "name", "timeout_s", "is_active")
        labels = {
            "timeout_s": "Timeout in seconds",
            "base_url": "Address of its operations",
            "is_active": "Switched on",
            "key_place": "Where the key goes",
            "key_name": "Name of the key",
            "token_url": "Address that gives tokens",
        }
        help_texts = {"name": "What its tools' names begin with, e.g. crm for crm.listContacts. It cannot be changed."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["may_be_private"] = is_private(self.instance)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name in {tool.category for tool in installed_toolbox().tools()}:
            raise forms.ValidationError(f"Tools that ship begin with {name!r} already; choose another name.")
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self.instance.kind = self.kind
        for field in ADDRESSES:
            if cleaned.get(field):
                self._check_address(field, cleaned[field])
        if cleaned.get("may_be_private") and not self.errors:
            self.refuse_private(_places(cleaned), self._known(cleaned, opened_by_superuser=True))
        for field in NEEDED.get(cleaned.get("authentication", ""), ()):
            if field in self.fields and not cleaned.get(field):
                self.add_error(field, "This authentication needs it.")
        return cleaned

    def _check_address(self, field: str, address: str) -> None:
        try:
            (check_base_url if field == "base_url" else read_url)(address)
            refuse_unreachable(host_of(read_url(address)))
        except ToolError as error:
            self.add_error(field, error.message)
        except forms.ValidationError as error:
            self.add_error(field, error)

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """A network that is not public, and credentials that go to another place."""
        places = _places(cleaned)
        moved = {*ADDRESSES, "authentication", "service"} & set(self.changed_data)
        if cleaned.get("may_be_private"):
            known = self._known(cleaned, **({"opened_by_superuser": True} if self.by_superuser else {}))
            yield from map(private_network, sorted(set(places) - known))
        if self.instance.pk and moved and places and self.instance.authentication != Authentication.NONE:
            service, where = self.instance.credentials_service, ", ".join(places)
            if self._has_credentials(cleaned):
                yield f"The credentials of {service} go to {where} from now on."
            else:
                yield f"The credentials of {service} will go to {where} once they are given."

    def _known(self, cleaned: dict[str, Any], **more: bool) -> set[str]:
        """Return the hosts of the form that may be private already."""
        owner = cleaned.get("organization") or self.instance.organization
        known = owner.allowed_hosts.filter(host__in=_places(cleaned), may_be_private=True, **more)
        return set(known.values_list("host", flat=True))

    def _has_credentials(self, cleaned: dict[str, Any]) -> bool:
        owner = cleaned.get("organization") or self.instance.organization
        return Credential.objects.filter(organization=owner, service=self.instance.credentials_service).exists()


def _places(cleaned: dict[str, Any]) -> list[str]:
    """List the hosts of a valid form's addresses."""
    return sorted({host_of(read_url(cleaned[name])) for name in ADDRESSES if cleaned.get(name)})


class OpenAPIForm(SourceForm):
    """An HTTP API: its description, where its operations go, and how requests are signed."""

    never_shown = ("file",)
    kind = SourceKind.OPENAPI
    told = "Each operation of its description that you choose becomes a tool."

    address = forms.CharField(
        label="Address of the description",
        required=False,
        max_length=1_000,
        widget=UnfoldAdminTextInputWidget,
        help_text="OpenAPI 3.1, 3.0 or Swagger 2.0, as JSON or YAML, e.g. https://api.example.com/openapi.json.",
    )
    file = forms.FileField(label="or its file", required=False, help_text="It takes the place of the address.")

    class Meta(SourceForm.Meta):
        fields = (*SourceForm.Meta.fields, "address", "base_url", *AUTHENTICATION)
        help_texts = {
            **SourceForm.Meta.help_texts,
            "base_url": "e.g. https://api.example.com/v2. Empty: what the description names first; with an "
            "authentication only if that is where the description itself is.",
            "key_place": "Only for an API key.",
            "key_name": "Only for an API key: the name of the header, the parameter or the cookie, e.g. X-API-Key.",
            "token_url": "Only for OAuth 2, e.g. https://login.example.com/oauth/token.",
            "scopes": "Only for OAuth 2, separated by spaces; empty: none.",
        }

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file is not None and file.size > LARGEST_DOCUMENT:
            raise forms.ValidationError(f"It has {file.size:,} bytes; at most {LARGEST_DOCUMENT:,} are read.")
        return file

    def clean(self) -> dict[str, Any]:
        """There is one description, at an address or in a file."""
        cleaned = super().clean() or {}
        if cleaned.get("file") is not None and cleaned.get("address"):
            self.add_error("file", "Give an address or a file, not both.")
        elif cleaned.get("file") is not None:
            try:
                self.instance.document = cleaned["file"].read().decode()
            except UnicodeDecodeError:
                self.add_error("file", "This is not a text in UTF-8.")
        elif not cleaned.get("address") and not self.instance.document and "address" not in self.errors:
            self.add_error("address", "Give the address of the description, or its file.")
        return cleaned


class McpHttpForm(SourceForm):
    """An MCP server that is reached over HTTP."""

    kind = SourceKind.MCP_HTTP
    told = "Each of its tools waits in quarantine until you give it a level."

    address = forms.CharField(
        max_length=1_000, widget=UnfoldAdminTextInputWidget, help_text="e.g. https://mcp.example.com/mcp"
    )
    authentication = forms.ChoiceField(
        choices=[
            (kind.value, kind.label)
            for kind in (Authentication.NONE, Authentication.BEARER, Authentication.API_KEY, Authentication.BASIC)
        ],
        widget=UnfoldAdminSelectWidget,
    )

    class Meta(SourceForm.Meta):
        fields = (*SourceForm.Meta.fields, "address", "authentication", "service", "key_name")
        help_texts = {**SourceForm.Meta.help_texts, "key_name": "Only for an API key: its header, e.g. X-API-Key."}


class McpStdioForm(SourceForm):
    """An MCP server that is a program on this machine, started by each worker when it needs it."""

    kind = SourceKind.MCP_STDIO
    told = "Gadget starts the program itself. Each of its tools waits in quarantine until you give it a level."

    command_line = forms.CharField(
        label="Command",
        max_length=1_000,
        widget=UnfoldAdminTextInputWidget,
        help_text="As in a shell, but without its signs for pipes and variables, e.g. "
        "uvx mcp-server-time --local-timezone Europe/Berlin.",
    )
    variables = LinesField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="Environment variables from the credentials, one per line: VARIABLE=field, e.g. GITHUB_TOKEN=token. "
        "It gets HOME and PATH, and nothing else of Gadget's own.",
    )

    class Meta(SourceForm.Meta):
        fields = (*SourceForm.Meta.fields, "service")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.pop("may_be_private")
        self.initial["command_line"] = shlex.join(self.instance.command)
        self.initial["variables"] = [f"{name}={field}" for name, field in self.instance.environment.items()]

    def clean_command_line(self) -> str:
        line: str = self.cleaned_data["command_line"]
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise forms.ValidationError(f"This cannot be read as a command: {error}.") from error
        self.instance.command = words
        return line

    def clean_variables(self) -> list[str]:
        lines: list[str] = self.cleaned_data["variables"]
        pairs = [line.partition("=") for line in lines]
        if bad := [name for name, _, field in pairs if not (name.isidentifier() and FIELD_NAME.fullmatch(field))]:
            raise forms.ValidationError(
                f"Write VARIABLE=field, the field in small letters, digits and _; {bad[0]!r} is not so."
            )
        self.instance.environment = {name: field for name, _, field in pairs}
        return lines

    def consequences(self, cleaned: dict[str, Any]) -> Iterator[str]:
        """It has the rights of the user that Gadget runs as."""
        if "command_line" in self.changed_data:
            yield f"Gadget's workers run this program with their own rights: {cleaned['command_line']}"
        if self.instance.pk and self.instance.environment and {"service", "variables"} & set(self.changed_data):
            gets, then = (
                ("gets", "from now on") if self._has_credentials(cleaned) else ("will get", "once they are given")
            )
            yield f"This program {gets} credentials of {self.instance.credentials_service} {then}."


FORMS: dict[SourceKind, type[SourceForm]] = {
    SourceKind.OPENAPI: OpenAPIForm,
    SourceKind.MCP_HTTP: McpHttpForm,
    SourceKind.MCP_STDIO: McpStdioForm,
}


def fieldsets_of(kind: SourceKind, *, is_new: bool, may_save: bool) -> list[tuple[str | None, dict[str, Any]]]:
    """The sections of a kind's form; what the source says of itself stands first once it is there.

    Whoever may not save it is shown no more than that.
    """
    told = (
        () if is_new else ("kind", "state", "title", "described_version", "checked_at", "refreshed_at", "reading_told")
    )
    head: tuple[str | None, dict[str, Any]] = (None, {"fields": ("organization", "name", *told, "is_active")})
    if not may_save:
        return [head]
    where: dict[SourceKind, tuple[str, ...]] = {
        SourceKind.OPENAPI: ("address", "file", "base_url", "may_be_private", "timeout_s"),
        SourceKind.MCP_HTTP: ("address", "may_be_private", "timeout_s"),
        SourceKind.MCP_STDIO: ("command_line", "variables", "timeout_s"),
    }
    signed: dict[SourceKind, tuple[str, ...]] = {
        SourceKind.OPENAPI: AUTHENTICATION,
        SourceKind.MCP_HTTP: ("authentication", "key_name", "service"),
        SourceKind.MCP_STDIO: ("service",),
    }
    return [head, ("Where it is", {"fields": where[kind]}), ("Authentication", {"fields": signed[kind]})]
