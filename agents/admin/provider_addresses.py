"""Addresses of providers as people type them. If the text starts with neither `https://` nor
`http://`, both are tried."""

from __future__ import annotations

from dataclasses import dataclass

from agents.employees.provider_settings import explain_refused_address, find_address_problem
from agents.providers.base import ProviderError

LOOKUP_TIMEOUT_S = 2.0
TRY_TIMEOUT_S = 5.0
SCHEMES = ("https", "http")


@dataclass(frozen=True)
class FoundAddress:
    """The address found for the text that a person typed.

    Attributes:
        fault: the reason why the address is not accepted; None if it is accepted.
        note: a sentence about the choice between https and http; empty if there was no choice.
    """

    address: str
    fault: str | None = None
    note: str = ""


def find_address(kind: str, typed: str) -> FoundAddress:
    """Find the address that a person means, or the reason why it is refused. If the text has no
    scheme, try both schemes."""
    typed = typed.strip()
    if not typed or "://" in typed:
        return FoundAddress(typed, _explain_refusal(kind, typed))
    problems: dict[str, ProviderError | None] = {}
    for scheme in SCHEMES:
        address = f"{scheme}://{typed}"
        if (fault := _explain_refusal(kind, address)) is not None:
            return FoundAddress(address, fault)
        problems[scheme] = _try(kind, address)
    return _choose(typed, problems)


def _choose(typed: str, problems: dict[str, ProviderError | None]) -> FoundAddress:
    """Choose the scheme with which the server works as a model server, or else a scheme with which
    it responds at all."""
    working = [scheme for scheme in SCHEMES if problems[scheme] is None]
    responding = [scheme for scheme in SCHEMES if not _is_silent(problems[scheme])]
    found = next(iter([*working, *responding]), None)
    if found is None:
        fault = f"Nothing responds at https://{typed} or http://{typed}."
        advice = "Start the server, or begin the address with https:// or http://."
        return FoundAddress(typed, f"{fault} {advice}")
    note = f"{typed} responds via {found}. The address is saved as {found}://{typed}."
    return FoundAddress(f"{found}://{typed}", note=note)


def _try(kind: str, address: str) -> ProviderError | None:
    """Send the server a request that is free of charge, without a key; return the error, or None if
    the request succeeds."""
    try:
        find_address_problem(kind, address, TRY_TIMEOUT_S)
    except ProviderError as error:
        return error
    return None


def _is_silent(error: ProviderError | None) -> bool:
    return error is not None and error.code in ("unreachable", "timeout", "bad_settings")


def _explain_refusal(kind: str, address: str) -> str | None:
    try:
        return explain_refused_address(kind, address, LOOKUP_TIMEOUT_S)
    except ProviderError:
        return None
