"""What every source does when the credentials that it needs are not there."""

from collections.abc import Iterable, Mapping

from tools.contract import ErrorCode, ToolError


def refuse_missing(service: str, names: Iterable[str], values: Mapping[str, str]) -> None:
    """Unless the service's credentials have a value for each of these names.

    Raises:
        ToolError: UNAUTHORIZED, naming all that is missing; nothing was attempted.
    """
    if missing := ", ".join(name for name in names if not values.get(name)):
        raise ToolError(
            ErrorCode.UNAUTHORIZED,
            f"There are no credentials for {service!r}: {missing} is missing.",
            recovery_hint=f"An admin has to enter {missing} for the service {service!r}.",
            attempted=False,
        )
