"""The ASGI application for HTTP and WebSockets."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gadget_site.settings")
pages = get_asgi_application()

from agents.api.ask_waiting import AskWaiting  # noqa: E402
from agents.mcp_server.door import PATH, McpDoor  # noqa: E402  (models exist only once Django is set up)
from agents.mcp_server.server import build_server  # noqa: E402
from agents.routing import websocket_urlpatterns  # noqa: E402
from gadget_site.edge.bounded_responses import BoundedResponses  # noqa: E402
from gadget_site.edge.paths import AtPath  # noqa: E402
from gadget_site.edge.proxies import TrustedProxies  # noqa: E402
from gadget_site.edge.request_ids import RequestIds  # noqa: E402
from gadget_site.edge.start_gate import StartGate  # noqa: E402
from gadget_site.origins import KnownHosts, KnownOrigins  # noqa: E402
from gadget_site.version import VERSION  # noqa: E402

application = TrustedProxies(
    RequestIds(
        StartGate(
            ProtocolTypeRouter(
                {
                    "http": BoundedResponses(
                        AtPath(PATH, KnownHosts(McpDoor(build_server(VERSION))), AskWaiting(pages))
                    ),
                    "websocket": KnownOrigins(
                        AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
                    ),
                }
            )
        )
    )
)
