"""All URLs of the installation: pages, REST, admin, metrics."""

from django.contrib import admin
from django.urls import include, path

from agents.api import api
from agents.web.views.metrics import metrics
from gadget_site.demo.login import DemoLogin

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("metrics", metrics, name="metrics"),
    path("login/demo/", DemoLogin.as_view(), name="demo-login"),
    path("", include("agents.urls")),
]

handler500 = "agents.web.views.unavailable.handle_error"
