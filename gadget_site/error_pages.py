"""The error pages while DEBUG is on. They show the error and its location, but no values, because
some values are secrets."""

from __future__ import annotations

from collections.abc import ItemsView
from typing import Any

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

from agents.platform.known_secrets import KNOWN_SECRETS
from agents.platform.log_context import get_logged_organization
from gadget_site.logs import HIDDEN


class _WithoutValues(SafeExceptionReporterFilter):
    """A filter that leaves out the request's data, the variables' values and the settings."""

    def get_post_parameters(self, request: HttpRequest | None) -> dict[str, Any]:
        """Return the field names without their values; none if the request's data was
        not parsed."""
        read: MultiValueDict[str, str] = getattr(request, "_post", None) or MultiValueDict()
        return dict.fromkeys(read, self.cleansed_substitute)

    def get_traceback_frame_variables(self, *_: object) -> ItemsView[str, object]:
        return dict[str, object]().items()

    def get_safe_settings(self) -> dict[str, Any]:
        return {}


class ReporterWithoutValues(ExceptionReporter):
    """Django's report without values; credentials are removed from the exception's message."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.filter = _WithoutValues()

    def get_traceback_data(self) -> dict[str, Any]:
        data: dict[str, Any] = super().get_traceback_data()
        texts = ("exception_value", "exception_notes", "unicode_hint")
        return data | {name: _hide_secrets(data[name]) for name in texts if name in data}


def _hide_secrets(text: str) -> str:
    """Hide the secrets of the organization that the log line is about, and then those of all
    organizations, because the error may contain any of them."""
    return KNOWN_SECRETS.redact(
        KNOWN_SECRETS.redact(text, HIDDEN, get_logged_organization()), HIDDEN
    )
