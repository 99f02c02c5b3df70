"""One installation of Gadget: settings and wiring. Every process has the queue's application, so it is loaded here."""

from gadget_site.celery import app as celery_app

__all__ = ["celery_app"]
