"""All URLs of the installation: pages, REST, admin, metrics."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from agents.api import api
from agents.web.views.metrics import metrics
from gadget_site.demo.login import DemoLogin

OWN_PASSWORD = RedirectView.as_view(pattern_name="own-password")
"""Replaces the admin's password pages, which neither limit attempts nor write audit entries."""

urlpatterns = [
    path("admin/password_change/", OWN_PASSWORD),
    path("admin/password_change/done/", OWN_PASSWORD),
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("metrics", metrics, name="metrics"),
    path("login/demo/", DemoLogin.as_view(), name="demo-login"),
    path("", include("agents.urls")),
]

handler500 = "agents.web.views.unavailable.handle_error"
