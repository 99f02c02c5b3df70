"""Django app of the office, which registers its stores of files and of records."""

from django.apps import AppConfig


class OfficeConfig(AppConfig):
    name = "tools.office"
    verbose_name = "Office"

    def ready(self) -> None:
        from tools.office.file_store import FILES
        from tools.office.record_store import RECORDS
        from tools.registries.files import FILE_STORE
        from tools.registries.records import RECORD_STORE

        FILE_STORE.register(FILES)
        RECORD_STORE.register(RECORDS)
