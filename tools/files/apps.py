"""Django app for organizations' files, which have no tables."""

from django.apps import AppConfig


class FilesConfig(AppConfig):
    name = "tools.files"
    label = "files"
    verbose_name = "Files"

    def ready(self) -> None:
        from tools.files.store import STORE
        from tools.registries.files import FILE_STORE

        FILE_STORE.register(STORE)
