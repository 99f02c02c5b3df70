"""Webhooks: send one signed event to one address of another system, as Standard Webhooks
specifies."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone
from standardwebhooks import Webhook as Signer

from agents.deliveries.content import SignedEvent
from agents.deliveries.failures import DeliveryError, read_retry_after
from agents.platform.database_connections import release_connection
from tools.contract import NetworkAccess, ToolError
from tools.network import ClientResponse, NetworkLimits, get_host, read_url, request

LIMITS = NetworkLimits(total_s=15.0, response_bytes=1_000_000, redirects=0)
LONGEST_WAIT_S = 4 * 3600.0
"""The longest time, in seconds, for which a receiver can make us wait."""
GONE = 410


def send(address: str, event: SignedEvent) -> int:
    """Sign an event and send it through the guarded client; return the status of the response.

    Raises:
        DeliveryError: the receiver refused it or was unreachable, or no secret can be decrypted.
    """
    if not event.secrets:
        raise DeliveryError("the webhook's secret cannot be read")
    headers = sign(event)
    try:
        reach = NetworkAccess(
            requested=frozenset({get_host(read_url(address))}),
            installation=settings.ALLOWED_PRIVATE_HOSTS,
        )
        release_connection()
        body = event.body.encode()
        response = request(
            "POST", address, reach=reach, headers=headers, body=body, limits=LIMITS, repeatable=True
        )
    except ToolError as error:
        raise DeliveryError(error.message) from error
    if not 200 <= response.status < 300:
        raise _describe_refusal(response)
    return response.status


def sign(event: SignedEvent) -> dict[str, str]:
    """Return the headers of Standard Webhooks, with one signature per secret."""
    now = timezone.now()
    signatures = [Signer(each).sign(event.key, now, event.body) for each in event.secrets]
    return {
        "content-type": "application/json",
        "webhook-id": event.key,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _describe_refusal(response: ClientResponse) -> DeliveryError:
    return DeliveryError(
        f"the receiver responded with {response.status}",
        is_gone=response.status == GONE,
        answer_status=response.status,
        retry_after_s=read_retry_after(response.headers.get("retry-after", ""), LONGEST_WAIT_S),
    )
