"""The backup archive: a sealed, compressed tar whose last member is a signed manifest with the hash
of every other member."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from agents.platform import signatures
from gadget_site.backup import seal
from tools.contract import canonical_json

FORMAT = 1
MANIFEST = "manifest.json"
README = "README.txt"
DATABASE = "database"
FILES = "files"
MAX_MANIFEST_BYTES = 1_000_000_000
_PART = 1 << 20
_PURPOSE = "backup"
_DAMAGE = (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, RecursionError)


class BackupError(Exception):
    """A backup cannot be taken or restored; the text is printed on the command line."""


class Member(BaseModel):
    """The expected size and hash of an archive member."""

    model_config = ConfigDict(frozen=True)

    size: int
    sha256: str


class Manifest(BaseModel):
    """The contents of an archive, and the facts needed to restore it.

    Attributes:
        database: the vendor, `sqlite` or `postgresql`.
        migrations: (app, name) of each applied migration.
        columns: the columns of each table, in the order of the dump; empty for SQLite.
        sequences: the last value of each sequence; empty for SQLite.
        members: the members to restore, by name. The archive may also hold earlier copies and
            deleted files.
        folders: all folders below the files folder, as relative paths.
        canaries: a known text, encrypted with each key that is in use in the database.
        heads: the heads of all audit chains, to compare later.
    """

    format: int = FORMAT
    made_at: str
    database: str
    migrations: list[tuple[str, str]]
    columns: dict[str, list[str]] = {}
    sequences: dict[str, int] = {}
    members: dict[str, Member] = {}
    folders: list[str] = []
    canaries: list[str] = []
    heads: list[str] = []
    key_id: str = ""
    signature: str = ""

    def sign(self) -> Self:
        """Return the manifest, signed with the first audit key."""
        named = self.model_copy(update={"key_id": signatures.get_current_key_id()})
        return named.model_copy(update={"signature": named.expected_signature()})

    def expected_signature(self) -> str | None:
        """Compute the signature that the manifest should have; None if its key is not one of the
        audit keys."""
        text = canonical_json(self.model_dump(mode="json", exclude={"signature"}))
        return signatures.sign(_PURPOSE, text, self.key_id)


class Writer:
    """Writes members into a new archive, and collects their hashes for the manifest."""

    def __init__(self, path: Path) -> None:
        self.members: dict[str, Member] = {}
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
        self._file.write(bytes(seal.LENGTH))
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz", compresslevel=1)  # noqa: SIM115 (closed in __exit__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            if kind is None:
                self._tar.close()
                seal.write_seal(self._file)
                self._file.flush()
                os.fsync(self._file.fileno())

    def add_text(self, name: str, text: str) -> None:
        """Add a member that holds this text."""
        data = text.encode()
        self.add(name, io.BytesIO(data), len(data))

    def add(self, name: str, source: BinaryIO, size: int, changed_ns: int | None = None) -> None:
        """Add a member with the next `size` bytes of `source`; a later member of the same name
        replaces it.

        Raises:
            OSError: `source` has fewer bytes.
        """
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, 0o600
        member.mtime = (time.time_ns() if changed_ns is None else changed_ns) / 1e9
        reader = _HashingReader(source)
        self._tar.addfile(member, reader)
        self.members[name] = Member(size=size, sha256=reader.digest())


class _HashingReader(io.RawIOBase):
    """A reader that hashes everything it reads."""

    def __init__(self, source: BinaryIO) -> None:
        super().__init__()
        self._source, self._hash = source, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._hash.update(data)
        return data

    def digest(self) -> str:
        return self._hash.hexdigest()


def read_manifest(path: Path) -> Manifest:
    """Verify every member of the archive against the manifest, and return the manifest.

    Raises:
        BackupError: the archive is damaged, from another version, or not signed with one of the
            audit keys.
    """
    _check_seal(path)
    text, found = _read_contents(path)
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        fault = f"{path} is not a Gadget backup, or it is from a newer version: its manifest cannot be read."
        raise BackupError(fault) from error
    _check(path, manifest, found)
    return manifest


def _check_seal(path: Path) -> None:
    """Raise BackupError unless the seal matches the whole file. Nothing is unpacked before this
    check."""
    try:
        with path.open("rb") as file:
            if (found := seal.read_seal(file)) is None:
                raise BackupError(
                    f"{path} is not a Gadget backup, or it is damaged: it has no seal."
                )
            if not signatures.is_known(found.key_id):
                raise BackupError(_describe_unknown_key(path, found.key_id))
            if not found.fits(file):
                raise BackupError(f"{path} is damaged or was changed: its seal does not match.")
    except OSError as error:
        raise BackupError(_describe_unreadable(path, error)) from error


def _read_contents(path: Path) -> tuple[bytes, dict[str, Member]]:
    """Return the manifest's text, and the size and hash of every other member."""
    found: dict[str, Member] = {}
    text = b""
    with _read_members(path) as members:
        for member, source in members:
            if member.name == MANIFEST:
                text = source.read(MAX_MANIFEST_BYTES)
            else:
                found[member.name] = _measure(source)
    return text, found


def extract(path: Path, manifest: Manifest, top: str, into: Path) -> None:
    """Extract the manifest's members below the folder `top` into an empty folder, without `top` in
    their paths."""
    with _read_members(path) as members:
        for member, source in members:
            inner = PurePosixPath(member.name)
            if member.name not in manifest.members or inner.parts[0] != top:
                continue
            target = into.joinpath(*inner.parts[1:])
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(target, "wb", opener=_open_private) as file:
                shutil.copyfileobj(source, file, _PART)
            os.utime(target, (member.mtime, member.mtime))


def _check(path: Path, manifest: Manifest, found: dict[str, Member]) -> None:
    if manifest.format != FORMAT:
        raise BackupError(
            f"{path} has the format {manifest.format}, but this version reads {FORMAT}."
        )
    expected = manifest.expected_signature()
    if expected is None:
        raise BackupError(_describe_unknown_key(path, manifest.key_id))
    if expected != manifest.signature:
        raise BackupError(f"{path} was changed: its signature does not match.")
    for name, member in manifest.members.items():
        if found.get(name) != member:
            raise BackupError(
                f"{path} is damaged: {name!r} {'was changed' if name in found else 'is missing'}."
            )
        if not _stays_inside(name):
            raise BackupError(f"{path} contains {name!r}, a path outside the backup.")


def _describe_unknown_key(path: Path, key_id: str) -> str:
    return (
        f"{path} is signed with the audit key {key_id}, which GADGET_AUDIT_KEYS does not hold. "
        "Add the key from the time of the backup."
    )


def _describe_unreadable(path: Path, error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return f"There is no file {path}."
    return f"{path} cannot be read or unpacked: {error}."


def _stays_inside(name: str) -> bool:
    return not name.startswith("/") and ".." not in PurePosixPath(name).parts


def _measure(source: BinaryIO) -> Member:
    hashed, size = hashlib.sha256(), 0
    while part := source.read(_PART):
        hashed.update(part)
        size += len(part)
    return Member(size=size, sha256=hashed.hexdigest())


@contextmanager
def _read_members(path: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, BinaryIO]]]:
    """Open the archive and yield its regular members in order; raise BackupError if it is damaged.

    After the block, the rest of the archive is read, which finds damage in members that the
    manifest does not name.
    """
    try:
        with gzip.open(path) as unpacked:
            with tarfile.open(fileobj=unpacked, mode="r|") as tar:
                yield (
                    (member, _open_member(tar, member))
                    for member in _forgetting(tar)
                    if member.isreg()
                )
            while unpacked.read(_PART):
                pass
    except _DAMAGE as error:
        raise BackupError(_describe_unreadable(path, error)) from error


def _forgetting(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members in order, and clear tarfile's list of earlier members, which would
    otherwise grow with the archive."""
    for member in tar:
        yield member
        tar.members.clear()  # type: ignore[attr-defined]


def _open_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    content = tar.extractfile(member)
    assert content is not None, "a regular member has content"
    return content  # type: ignore[return-value]


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
