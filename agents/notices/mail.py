"""E-mail: one message to one address, by the installation's mail server."""

from __future__ import annotations

import smtplib
from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMessage

from agents.notices.failures import DeliveryError
from agents.notices.texts import OutgoingMessage


def send_mail(address: str, message: OutgoingMessage) -> None:
    """Send a message; its Message-ID is the same for each try, so that mail programs show a repeat once.

    Raises:
        DeliveryError: the server refused it, or was not there.
    """
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]
    headers = {"Message-ID": f"<{message.key}@{domain}>", "Auto-Submitted": "auto-generated"}
    mail = EmailMessage(message.subject, message.text, to=[address], headers=headers)
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused as error:
        code, answer = next(iter(error.recipients.values()))
        raise DeliveryError(f"the mail server refused the address: {code} {_decode(answer)}", code >= 500) from error
    except smtplib.SMTPAuthenticationError as error:
        raise DeliveryError("the mail server refused our login") from error
    except smtplib.SMTPResponseException as error:
        raise DeliveryError(f"the mail server answered {error.smtp_code} {_decode(error.smtp_error)}") from error
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryError(f"the mail server is not available: {type(error).__name__}") from error


def _decode(answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return " ".join(text.split())[:150]
