"""The installation: settings, processes and commands. Every process needs the queue's application,
so it loads here."""

from gadget_site.celery import app

__all__ = ["app"]
