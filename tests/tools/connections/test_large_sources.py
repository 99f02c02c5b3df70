"""A description of more than 20 MB, as widely used services publish, is fetched and read like any
other."""

from __future__ import annotations

import pytest

from tests.tools.connections.api import Api, operation
from tests.tools.connections.connecting import connect_api
from tests.workshop import Workshop
from tools.connections.models import SourceTool

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_description_of_more_than_twenty_megabytes_is_fetched(
    workshop: Workshop, api: Api
) -> None:
    words = "word " * 50_000
    api.paths = {
        f"/things/{number}": {"post": operation(f"add{number}", words)} for number in range(100)
    }
    assert len(api.document()) > 20_300_000
    source = connect_api(workshop, api)
    assert (source.problem, SourceTool.objects.filter(source=source).count()) == ("", 100)
