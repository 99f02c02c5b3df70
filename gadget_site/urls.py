"""All URLs of the installation: pages, REST, admin, metrics."""

from django.contrib import admin
from django.urls import include, path

from agents.api import api
from agents.web.views.metrics import metrics

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("metrics", metrics, name="metrics"),
    path("", include("agents.urls")),
]

handler500 = "agents.web.views.unavailable.handle_error"
