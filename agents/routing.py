"""The addresses of WebSockets."""

from __future__ import annotations

from typing import Any

from django.urls import path

from agents.web.sockets.consumers import InboxConsumer, RunConsumer

# Any: `path` is typed for views, but Channels' router takes ASGI applications.
consumers: dict[str, Any] = {
    "ws/runs/<int:run_id>/": RunConsumer.as_asgi(),
    "ws/inbox/": InboxConsumer.as_asgi(),
}
websocket_urlpatterns = [path(address, consumer) for address, consumer in consumers.items()]
