"""All addresses of the installation: pages, REST, admin."""

from django.contrib import admin
from django.urls import include, path

from agents.api import api

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("", include("agents.urls")),
]
