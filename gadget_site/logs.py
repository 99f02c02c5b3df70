"""Logging settings: one line per event, as text or JSON, with every known secret removed."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import structlog

from agents.platform.known_secrets import KNOWN_SECRETS, KnownSecrets
from gadget_site.settings_table import SiteSettings
from tools.config import ToolSettings
from tools.contract import SHORTEST_SECRET

HIDDEN = "[hidden]"
DEFAULT_NAME = ToolSettings().orchestrator_id
OWN_PACKAGES = frozenset({"agents", "tools", "gadget_site"})
"""The packages whose messages are written by Gadget's code; only their arguments may hold
secrets."""
OWN_FIELDS = frozenset(
    {"timestamp", "level", "logger", "orchestrator", "organization", "_record", "_from_structlog"}
)
PLAIN = (int, float, bool, type(None))
SECRET_SHAPES = (
    re.compile(r"(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(://[^\s:/@]*:)[^\s@/]+(?=@)"),
    re.compile(r"()\bsk-[A-Za-z0-9_-]{16,}"),
)


class Redaction:
    """Removes secrets from a line's values: the installation's own, those that this process has
    read for organizations, and text that looks like a secret.

    Texts that Gadget's code writes itself stay unchanged: otherwise an organization could hide them
    from everybody by storing them as a credential.
    """

    def __init__(self, secrets: list[str]) -> None:
        self._own = KnownSecrets()
        self._own.learn(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)

    def __call__(
        self, _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        organization = event.get("organization")
        owner = organization if isinstance(organization, int) else None
        record: logging.LogRecord | None = event.get("_record")
        arguments = event.pop("positional_args", ())
        for name, value in event.items():
            if name == "event":
                event[name] = self._redact_message(value, record, arguments, owner)
            elif name not in OWN_FIELDS:
                event[name] = self._redact(value, owner)
        return event

    def _redact_message(
        self, text: Any, record: logging.LogRecord | None, arguments: Any, owner: int | None
    ) -> Any:
        """Redact the arguments of our own messages, and other messages as a whole."""
        if record is None or record.name.partition(".")[0] not in OWN_PACKAGES:
            return self._redact(text, owner)
        if isinstance(arguments, Mapping):
            return str(record.msg) % {
                name: self._redact_argument(value, owner) for name, value in arguments.items()
            }
        if arguments:
            return str(record.msg) % tuple(
                self._redact_argument(value, owner) for value in arguments
            )
        return text

    def _redact_argument(self, value: Any, owner: int | None) -> Any:
        if isinstance(value, PLAIN):
            return value
        return _Redacted(self._redact(str(value), owner), self._redact(repr(value), owner))

    def _redact(self, value: Any, owner: int | None) -> Any:
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, Mapping):
            return {
                self._redact(str(name), owner): self._redact(child, owner)
                for name, child in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._redact(child, owner) for child in value]
        text = value if isinstance(value, str) else repr(value)
        text = KNOWN_SECRETS.redact(self._own.redact(text, HIDDEN), HIDDEN, owner)
        for shape in SECRET_SHAPES:
            text = shape.sub(rf"\g<1>{HIDDEN}", text)
        return text


@dataclass(frozen=True)
class _Redacted:
    """An argument of a log line, with both its `str` and its `repr` redacted."""

    text: str
    representation: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.representation


def build_logging_settings(site: SiteSettings) -> dict[str, Any]:
    """Return Django's LOGGING, and configure structlog to write through it."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *_build_name_processors(site.config.tools.orchestrator_id),
    ]
    structlog.configure(
        processors=[
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "pass_foreign_args": True,
                "processors": [
                    structlog.processors.format_exc_info,
                    Redaction(_list_secrets(site)),
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    _build_renderer(site.log_format),
                ],
            },
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": site.log_level},
        "loggers": _build_logger_settings(site.log_level),
    }


def _build_name_processors(orchestrator_id: str) -> list[Any]:
    """Return processors that add the installation's name to each line, if `gadget.yaml` sets one:
    several installations may share a log."""
    if orchestrator_id == DEFAULT_NAME:
        return []
    return [lambda _logger, _method, event: {**event, "orchestrator": orchestrator_id}]


def _build_renderer(log_format: str) -> Any:
    if log_format == "json":
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(
        colors=False,
        exception_formatter=structlog.dev.plain_traceback,
        pad_event_to=0,
        pad_level=False,
    )


def _list_secrets(site: SiteSettings) -> list[str]:
    keys = [site.secret_key, *site.encryption_keys, *site.audit_keys]
    own = [
        *keys,
        site.openai_api_key,
        site.database.password,
        site.mail.password,
        site.metrics_token,
    ]
    return [*own, *site.config.environment.secrets]


def _build_logger_settings(level: str) -> dict[str, Any]:
    """Return logger settings that limit verbose libraries to WARNING, unless the level is DEBUG."""
    chatty = (
        "daphne",
        "twisted",
        "asyncio",
        "httpx2",
        "httpcore2",
        "openai",
        "celery",
        "kombu",
        "axes",
        "markdown_it",
        "mcp",
    )
    quiet = {name: {"level": "WARNING"} for name in chatty} if level != "DEBUG" else {}
    # Without Redis, this logger writes a traceback every second; our feeds log the outage once.
    quiet["channels_redis.pubsub"] = {"level": "CRITICAL"}
    return {**quiet, "django": {"handlers": [], "level": "INFO", "propagate": True}}
