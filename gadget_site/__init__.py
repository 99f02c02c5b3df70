"""The installation: settings, processes and commands. Every process needs the Celery app, so this
package imports it."""

from gadget_site.celery import app

__all__ = ["app"]
