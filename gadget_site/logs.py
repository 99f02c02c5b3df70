"""Logging settings: one line per event, as text or JSON, with every known secret removed."""

from __future__ import annotations

import re
from typing import Any

import structlog

from agents.platform.known_secrets import KNOWN_SECRETS, KnownSecrets
from gadget_site.environment import SiteSettings
from tools.config import ToolSettings
from tools.contract import SHORTEST_SECRET

HIDDEN = "[hidden]"
DEFAULT_NAME = ToolSettings().orchestrator_id
SECRET_SHAPES = (
    re.compile(r"(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(://[^\s:/@]*:)[^\s@/]+(?=@)"),
    re.compile(r"()\bsk-[A-Za-z0-9_-]{16,}"),
)


class Redaction:
    """Removes secrets from a finished line: the installation's own, those that this process has read for
    organizations, and text that looks like a secret.
    """

    def __init__(self, secrets: list[str]) -> None:
        self._own = KnownSecrets()
        self._own.learn(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)

    def __call__(self, _logger: Any, _method: str, line: str) -> str:
        line = KNOWN_SECRETS.redact(self._own.redact(line, HIDDEN), HIDDEN)
        for shape in SECRET_SHAPES:
            line = shape.sub(rf"\g<1>{HIDDEN}", line)
        return line


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
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *_build_renderers(site.log_format),
                    Redaction(_list_secrets(site)),
                ],
            },
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": site.log_level},
        "loggers": _build_logger_settings(site.log_level),
    }


def _build_name_processors(orchestrator_id: str) -> list[Any]:
    """Add the installation's name to each line, if `gadget.yaml` sets one: several may share a log."""
    if orchestrator_id == DEFAULT_NAME:
        return []
    return [lambda _logger, _method, event: {**event, "orchestrator": orchestrator_id}]


def _build_renderers(log_format: str) -> list[Any]:
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    return [
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback, pad_event_to=0, pad_level=False
        )
    ]


def _list_secrets(site: SiteSettings) -> list[str]:
    keys = [site.secret_key, *site.encryption_keys, *site.audit_keys]
    own = [*keys, site.openai_api_key, site.database.password, site.mail.password, site.metrics_token]
    return [*own, *site.config.environment.secrets]


def _build_logger_settings(level: str) -> dict[str, Any]:
    """Limit verbose libraries to WARNING, unless the level is DEBUG."""
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
    # Without Redis, it logs a traceback every second; our feeds log the outage once.
    quiet["channels_redis.pubsub"] = {"level": "CRITICAL"}
    return {**quiet, "django": {"handlers": [], "level": "INFO", "propagate": True}}
