"""The ASGI application for HTTP and WebSockets."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gadget_site.settings")
pages = get_asgi_application()

from agents.routing import websocket_urlpatterns  # noqa: E402  (models exist only once Django is set up)
from gadget_site.edge.bounded_responses import BoundedResponses  # noqa: E402
from gadget_site.edge.proxies import TrustedProxies  # noqa: E402
from gadget_site.origins import KnownOrigins  # noqa: E402

application = TrustedProxies(
    ProtocolTypeRouter(
        {
            "http": BoundedResponses(pages),
            "websocket": KnownOrigins(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
        }
    )
)
