"""All addresses of the installation: pages, REST, admin, metrics."""

from django.contrib import admin
from django.urls import include, path

from agents.api import api
from agents.views.metrics import metrics

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("metrics", metrics, name="metrics"),
    path("", include("agents.urls")),
]

handler500 = "agents.views.unavailable.failed"
