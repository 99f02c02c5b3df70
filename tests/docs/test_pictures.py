"""Git tracks exactly the pictures that a page shows; it ignores all others that `make screens`
creates."""

import pytest

from tests.docs.pages import PAGES
from tests.house.pages import find_shown, list_pictures
from tests.source_tree import ROOT


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git says which pictures it tracks")
def test_git_tracks_exactly_the_pictures_that_pages_show() -> None:
    shown = {picture for page in PAGES for picture in find_shown(page)}
    assert shown
    assert set(list_pictures()) == shown
