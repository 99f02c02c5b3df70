"""The sockets of one visitor's pages, which a test can cut and restore; requests still arrive."""

from __future__ import annotations

import re

from playwright.sync_api import WebSocketRoute

from tests.journeys.visitor import Visitor


class SocketLink:
    """A proxy for all socket messages to pages that the visitor opens from now on."""

    def __init__(self, visitor: Visitor) -> None:
        self._is_cut = False
        self._open: list[WebSocketRoute] = []
        visitor.page.route_web_socket(re.compile("/ws/"), self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self._is_cut:
            socket.close()
        else:
            socket.connect_to_server()
            self._open.append(socket)

    def cut(self) -> None:
        self._is_cut = True
        for socket in self._open:
            socket.close()
        self._open.clear()

    def mend(self) -> None:
        self._is_cut = False
