"""E-mail: send one notification to one address through the installation's mail server."""

from __future__ import annotations

import smtplib
from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMessage

from agents.deliveries.content import Notification
from agents.deliveries.failures import DeliveryError
from agents.platform.database_connections import release_connection


def send(address: str, notification: Notification) -> None:
    """Send a notification. Its Message-ID is the same for each attempt, so that mail programs show
    a repeated mail only once.

    Raises:
        DeliveryError: the server refused it, or was unreachable.
    """
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]
    headers = {"Message-ID": f"<{notification.key}@{domain}>", "Auto-Submitted": "auto-generated"}
    release_connection()
    mail = EmailMessage(notification.subject, notification.text, to=[address], headers=headers)
    try:
        mail.send()
    except OSError as error:
        raise DeliveryError(describe_failure(error), is_final=_is_final(error)) from error


def describe_failure(error: OSError) -> str:
    """Describe a failure of the mail server for people, without the notification or our password.

    Args:
        error: the error that `smtplib` raised; all of its errors are OSErrors.
    """
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, response = next(iter(error.recipients.values()))
        return f"the mail server refused the address: {code} {_decode(response)}"
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return "the mail server refused our login"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the mail server responded: {error.smtp_code} {_decode(error.smtp_error)}"
    return f"the mail server is not available: {type(error).__name__}"


def _is_final(error: OSError) -> bool:
    """Return True if the server will never accept this address."""
    if not isinstance(error, smtplib.SMTPRecipientsRefused):
        return False
    return all(code >= 500 for code, _ in error.recipients.values())


def _decode(response: bytes | str) -> str:
    text = response.decode("utf-8", "replace") if isinstance(response, bytes) else response
    return " ".join(text.split())[:150]
