"""Addresses of WebSockets."""

from django.urls import path

from .consumers import inbox_socket, run_socket

websocket_urlpatterns = [
    path("ws/runs/<int:run_id>/", run_socket),
    path("ws/inbox/", inbox_socket),
]
