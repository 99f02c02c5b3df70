"""Typed credentials of the services that Gadget knows; the credentials of other services are read
by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

Known = TypeVar("Known", "GoogleSearchAccount", "GitHubAccount", "SlackAccount")


@dataclass(frozen=True)
class GoogleSearchAccount:
    """The account of the service `google.cse`; unset values are empty, and values are never
    printed.

    Attributes:
        endpoint: an address to use instead of the API's own.
    """

    api_key: str = field(default="", repr=False)
    engine_id: str = field(default="", repr=False)
    endpoint: str = field(default="", repr=False)


@dataclass(frozen=True)
class GitHubAccount:
    """The account of the service `github`; unset values are empty, and values are never printed."""

    token: str = field(default="", repr=False)


@dataclass(frozen=True)
class SlackAccount:
    """The account of the service `slack`; unset values are empty, and values are never printed."""

    token: str = field(default="", repr=False)
    signing_secret: str = field(default="", repr=False)


GOOGLE_SEARCH, GITHUB, SLACK = "google.cse", "github", "slack"
KNOWN_SERVICES: Mapping[str, tuple[str, ...]] = {
    name: tuple(each.name for each in fields(account))
    for name, account in (
        (GOOGLE_SEARCH, GoogleSearchAccount),
        (GITHUB, GitHubAccount),
        (SLACK, SlackAccount),
    )
}
"""The known services with the names of their fields."""


class Services:
    """The accounts of the known services.

    Args:
        credentials: by service; reading an account raises a `ToolError` if none of the keys can
            decrypt its credentials.
    """

    def __init__(self, credentials: Mapping[str, Mapping[str, str]]) -> None:
        self._credentials = credentials

    @property
    def google_cse(self) -> GoogleSearchAccount:
        return self._read(GOOGLE_SEARCH, GoogleSearchAccount)

    @property
    def github(self) -> GitHubAccount:
        return self._read(GITHUB, GitHubAccount)

    @property
    def slack(self) -> SlackAccount:
        return self._read(SLACK, SlackAccount)

    def _read(self, service: str, account: type[Known]) -> Known:
        stored = self._credentials.get(service, {})
        return account(**{name: stored[name] for name in KNOWN_SERVICES[service] if name in stored})
