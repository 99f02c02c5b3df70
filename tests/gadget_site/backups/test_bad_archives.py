"""Archives that are truncated at any point, or that unpack to far more than their size, are refused
without using much memory."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from agents.accounts.models import Organization
from gadget_site.backup import seal
from gadget_site.backup.archive import MANIFEST, BackupError, Manifest, read_manifest
from tests.workshop import Workshop

LARGE = 100_000_000
"""The size in bytes to which a bomb unpacks."""
MOST_MEMORY = 60_000_000
"""The maximum extra memory, in bytes, that reading a bomb may use."""
END_OF_TAR = bytes(1024)


def list_cuts(content: bytes) -> Iterator[int]:
    """List the places before, inside and after the header and the content of every member but the
    last."""
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        members = tar.getmembers()
    assert members[-1].name == MANIFEST
    for one in members:
        end = one.offset_data + one.size
        yield from (one.offset, one.offset + 100, one.offset_data - 1, one.offset_data, end - 1)
        if one.name != MANIFEST:
            yield end


def assert_refused(path: Path) -> None:
    with pytest.raises(BackupError, match=str(path)):
        read_manifest(path)


@pytest.mark.once
class TestATruncatedArchive:
    @pytest.fixture
    def sealed(self, workshop: Workshop, take: Callable[[], Manifest], tmp_path: Path) -> Path:
        take()
        return tmp_path / "backup.tar.gz"

    def test_is_refused_if_cut_at_any_member(self, sealed: Path, tmp_path: Path) -> None:
        cut, front = tmp_path / "cut.tar.gz", sealed.read_bytes()[: seal.LENGTH]
        content = gzip.decompress(sealed.read_bytes())
        for end in list_cuts(content):
            for rest in (b"", END_OF_TAR):
                cut.write_bytes(front + gzip.compress(content[:end] + rest, 1))
                assert_refused(cut)

    def test_is_refused_if_cut_at_any_byte(self, sealed: Path, tmp_path: Path) -> None:
        sound, cut = sealed.read_bytes(), tmp_path / "cut.tar.gz"
        for end in {
            *range(seal.LENGTH + 40),
            *range(0, len(sound), len(sound) // 200),
            *range(len(sound) - 9, len(sound)),
        }:
            cut.write_bytes(sound[:end])
            assert_refused(cut)

    def test_does_not_change_organizations_when_its_restore_is_refused(self, sealed: Path) -> None:
        sound = sealed.read_bytes()
        for end in (0, seal.LENGTH, len(sound) // 2, len(sound) - 1):
            sealed.write_bytes(sound[:end])
            with pytest.raises(CommandError, match=str(sealed)):
                call_command("restore", str(sealed), force=True)
        assert not Organization.objects.exclude(restored_at=None).exists()

    def test_is_cut_from_an_archive_that_is_accepted_when_complete(self, sealed: Path) -> None:
        assert read_manifest(sealed).database == connection.vendor


def write_members(path: Path, *members: tuple[str, bytes, int]) -> None:
    """Write raw members (name, type, size) filled with zeros, as a hostile person would."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for name, kind, size in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, size
            file.write(info.tobuf(tarfile.USTAR_FORMAT))
            for _ in range(size >> 20):
                file.write(bytes(1 << 20))
            file.write(bytes(-(-(size % (1 << 20)) // 512) * 512))


def write_many(path: Path) -> None:
    header = tarfile.TarInfo("a").tobuf(tarfile.USTAR_FORMAT)
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(LARGE // len(header) // 1000):
            file.write(header * 1000)


def write_holes(path: Path) -> None:
    """Write a member with an endless map of holes."""
    text = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
    pax = tarfile.TarInfo("pax")
    pax.type, pax.size = tarfile.XHDTYPE, len(text)
    content = tarfile.TarInfo("holes")
    content.size = LARGE
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(
            pax.tobuf(tarfile.USTAR_FORMAT)
            + text.ljust(512, b"\0")
            + content.tobuf(tarfile.USTAR_FORMAT)
        )
        file.write(b"99999999\n")
        for _ in range(LARGE >> 20):
            file.write(b"0\n" * (1 << 19))


BOMBS: dict[str, Callable[[Path], None]] = {
    "a manifest": lambda path: write_members(path, (MANIFEST, tarfile.REGTYPE, LARGE)),
    "a header": lambda path: write_members(path, ("x", tarfile.XHDTYPE, LARGE)),
    "a global header": lambda path: write_members(path, ("g", tarfile.XGLTYPE, LARGE)),
    "a name": lambda path: write_members(path, ("L", tarfile.GNUTYPE_LONGNAME, LARGE)),
    "a sparse file": lambda path: write_members(path, ("S", tarfile.GNUTYPE_SPARSE, LARGE)),
    "headers of headers": lambda path: write_members(path, *[("x", tarfile.XHDTYPE, 0)] * 5000),
    "many members": write_many,
    "a map of holes": write_holes,
}
READ_ALL = """
import resource, sys
from pathlib import Path
import django
django.setup()
from gadget_site.backup.archive import BackupError, read_manifest
for path in map(Path, sys.argv[1:]):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        read_manifest(path)
        answer = "accepted"
    except BackupError as error:
        answer = "refused"
    print(answer, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.once
def test_small_archives_that_unpack_to_huge_contents_are_refused_with_limited_memory(
    tmp_path: Path,
) -> None:
    paths = []
    for name, write in BOMBS.items():
        paths.append(tmp_path / name)
        write(paths[-1])
        assert paths[-1].stat().st_size < LARGE / 80
    environment = {
        **os.environ,
        "GADGET_TESTS_GIVEN": "1",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    command = [sys.executable, "-c", READ_ALL, *map(str, paths)]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=settings.BASE_DIR,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answers = dict(zip(BOMBS, done.stdout.splitlines(), strict=True))
    for name, answer in answers.items():
        verdict, memory = answer.split()
        assert (verdict, int(memory) < MOST_MEMORY) == ("refused", True), f"{name}: {answer}"
