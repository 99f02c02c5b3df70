"""The check for missing credentials, common to all sources."""

from collections.abc import Iterable, Mapping

from tools.contract import ErrorCode, ToolError


def require_credentials(service: str, names: Iterable[str], values: Mapping[str, str]) -> None:
    """Require a value for each of these fields of the service's credentials.

    Raises:
        ToolError: UNAUTHORIZED, naming all missing fields; the call was not attempted.
    """
    if missing := ", ".join(name for name in names if not values.get(name)):
        raise ToolError(
            ErrorCode.UNAUTHORIZED,
            f"The credentials for {service!r} are incomplete: {missing} is missing.",
            recovery_hint=f"An admin must enter {missing} for the service {service!r}.",
            attempted=False,
        )
