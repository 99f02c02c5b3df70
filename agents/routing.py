"""Addresses of WebSockets."""

from typing import Any

from django.urls import path

from agents.web.sockets.consumers import inbox_socket, run_socket

# `path` is typed for views only; Channels' router takes any ASGI application.
sockets: dict[str, Any] = {"ws/runs/<int:run_id>/": run_socket, "ws/inbox/": inbox_socket}
websocket_urlpatterns = [path(address, socket) for address, socket in sockets.items()]
