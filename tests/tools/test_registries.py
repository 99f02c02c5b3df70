"""Registries of the functions that owners of data provide."""

import pytest

from tools.registries import Registry
from tools.registries.files import FILE_STORE


def test_an_empty_registry_names_its_subject_and_a_filled_registry_returns_its_function() -> None:
    registry = Registry[str]("weather")
    with pytest.raises(LookupError, match="no installed app has registered the weather"):
        registry.get()
    registry.register("sun")
    assert registry.get() == "sun"


def test_the_installed_apps_have_registered_the_file_store() -> None:
    assert FILE_STORE.get().max_files == 10_000
