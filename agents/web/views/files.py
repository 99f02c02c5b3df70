"""Files: the organization's folder, where employees read and write, and people upload, download and delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import content_disposition_header, urlencode

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.platform.database_connections import release_connection
from agents.platform.refusals import Conflict, Forbidden, NotFound
from agents.web.views.pages import member_view, render_page
from tools.contract import ErrorCode, ToolError, fingerprint
from tools.files.changes import LARGEST_FILE, MAX_FILES, StagedFile, delete_files, list_deletions, write_file
from tools.files.folder import FolderEntry, list_folder, open_file, open_folder
from tools.files.paths import Names, join_path, parse_file_path, parse_path

PAGE_SIZE = 200
MOST_AT_ONCE = 100_000_000
MOST_SHOWN = 50
MOST_NAMED = 20
_PART = 1 << 16


@member_view("GET")
def all_files(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show one folder, named by `?folder=`; folders first, then by name."""
    with _not_found_on_error():
        return _show(request, member, parse_path(request.GET.get("folder", "")))


@member_view("POST", page="files")
def upload(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Store the files and show their folder with a report; if all are refused, show the reasons beside the form."""
    _require_role(member, Role.OPERATOR, "upload files")
    folder = request.POST.get("folder", "")
    given = [one for one in request.FILES.getlist("files") if isinstance(one, UploadedFile)]
    try:
        names = parse_path(folder)
    except ToolError as error:
        return _refuse(request, member, f"{error.message} Nothing was uploaded.", folder)
    if not given:
        return _refuse(request, member, "Choose at least one file.", folder)
    outcomes = [_store_upload(member, folder, one) for one in given]
    there = names if _is_folder(member, names) else ()
    if all(one.why for one in outcomes):
        answer = _show(request, member, there, refused=outcomes, folder=folder)
        answer.status_code = 422
        return answer
    _report(request, outcomes)
    return redirect(_build_address(there))


@member_view("GET")
def download(_request: HttpRequest, member: Membership, path: str) -> HttpResponseBase:
    """Download a file; the browser never displays it."""
    with _not_found_on_error():
        names = parse_file_path(path)
        file = open_file(member.organization_id, names)
    parts = _FileStream(file)
    answer = StreamingHttpResponse(parts, content_type="application/octet-stream")
    answer["Content-Length"] = str(parts.left)
    answer["Content-Disposition"] = content_disposition_header(True, names[-1]) or "attachment"  # noqa: FBT003
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cache-Control"] = "no-store"
    return answer


@member_view("POST", page="files")
def delete_file(request: HttpRequest, member: Membership, path: str) -> HttpResponseBase:
    """Show what would be deleted; the same form with `confirmed` deletes exactly that."""
    with _not_found_on_error():
        names = parse_file_path(path)
    _require_role(member, Role.APPROVER, "delete files")
    with _not_found_on_error():
        doomed = list_deletions(member.organization_id, names)
    if request.POST.get("confirmed") != _compute_seal(doomed):
        shown = {
            "path": join_path(names),
            "doomed": doomed[:MOST_SHOWN],
            "total": len(doomed),
            "seal": _compute_seal(doomed),
        }
        return render_page(request, member, "files/confirm.html", shown | {"above": join_path(names[:-1])})

    def confirm(found: tuple[FolderEntry, ...]) -> None:
        if found != doomed:
            raise Conflict("The files just changed. Nothing was deleted. Check the list and try again.")
        paths = [entry.path for entry in found]
        _record(member, "file_deleted", join_path(names), files=len(paths), paths=paths[:MOST_SHOWN])

    release_connection()  # this may wait for other writers
    with _not_found_on_error():
        delete_files(member.organization_id, names, confirm)
    if _is_folder(member, names):
        messages.warning(
            request, f"The files in {join_path(names)} are deleted. The folder is kept because it holds something else."
        )
    else:
        messages.success(request, f"{join_path(names)} is deleted.")
    return redirect(_build_address(names[:-1]))


# The list


@dataclass(frozen=True)
class FileRow:
    """One row of the list."""

    entry: FolderEntry

    @property
    def changed(self) -> datetime:
        return datetime.fromtimestamp(self.entry.changed_ns / 1e9, UTC)

    @property
    def address(self) -> str:
        """The address of the folder's list; empty for a file."""
        return _build_address(self.entry.names) if self.entry.is_folder else ""


@dataclass(frozen=True)
class UploadOutcome:
    """The outcome of one upload: the reason of a refusal, or none."""

    name: str
    why: str = ""


def _show(request: HttpRequest, member: Membership, names: Names, **extra: Any) -> HttpResponse:
    listing = list_folder(member.organization_id, names)
    pages = Paginator([FileRow(entry) for entry in listing.entries], PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "rows": pages,
        "folder": join_path(names),
        "way": [(name, _build_address(names[: depth + 1])) for depth, name in enumerate(names)],
        "passed_over": listing.passed_over,
        "may_upload": member.may(Role.OPERATOR),
        "may_delete": member.may(Role.APPROVER),
        "largest_mb": LARGEST_FILE // 1_000_000,
        "most_mb": MOST_AT_ONCE // 1_000_000,
        "most_files": f"{MAX_FILES:,}",
        "refused": (),
        "problem": "",
    }
    return render_page(request, member, "files/list.html", context | extra)


def _is_folder(member: Membership, names: Names) -> bool:
    """Return True if the folder can be listed; a link cannot."""
    with suppress(ToolError), open_folder(member.organization_id, names):
        return True
    return False


def _refuse(request: HttpRequest, member: Membership, problem: str, folder: str) -> HttpResponse:
    answer = _show(request, member, (), problem=problem, folder=folder)
    answer.status_code = 422
    return answer


def _build_address(names: Names) -> str:
    query = f"?{urlencode({'folder': join_path(names)})}" if names else ""
    return reverse("files") + query


# Upload


def _store_upload(member: Membership, folder: str, given: UploadedFile[bytes]) -> UploadOutcome:
    """Store one file; an existing file is never replaced."""
    name = given.name or ""
    path = f"{folder}/{name}" if folder else name

    def confirm(staged: StagedFile) -> None:
        if staged.replaces is not None:
            raise ToolError(ErrorCode.INVALID_OPERATION, "A file with this name already exists.", attempted=False)
        _record(member, "file_uploaded", join_path(names), size=staged.size, sha256=staged.sha256)

    try:
        names = parse_file_path(path)
        release_connection()  # this may wait for other writers
        write_file(member.organization_id, names, _read_chunks(given), confirm)
    except ToolError as error:
        return UploadOutcome(name, error.message)
    return UploadOutcome(name)


def _report(request: HttpRequest, outcomes: list[UploadOutcome]) -> None:
    """Report uploaded files, and the reason for each refused one, on the next page."""
    for one in outcomes:
        if one.why:
            messages.error(request, f"{one.name} was not uploaded: {one.why}")
    stored = [one.name for one in outcomes if not one.why]
    named = ", ".join(stored[:MOST_NAMED]) + (
        f" and {len(stored) - MOST_NAMED} more" if len(stored) > MOST_NAMED else ""
    )
    messages.success(request, f"{named} {'is' if len(stored) == 1 else 'are'} uploaded.")


def _read_chunks(given: UploadedFile[bytes]) -> Iterable[bytes]:
    chunks: Iterable[bytes] = given.chunks()
    return chunks


# Download


class _FileStream:
    """The contents of an open file, read in parts; the response closes it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.left = file.seek(0, 2)
        file.seek(0)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.left > 0 and (part := await sync_to_async(self._file.read)(min(_PART, self.left))):
            self.left -= len(part)
            yield part

    def close(self) -> None:
        self._file.close()


# Rules


@contextmanager
def _not_found_on_error() -> Iterator[None]:
    """Turn errors of a path into 404, except for limits and failed operations."""
    try:
        yield
    except ToolError as error:
        if error.code in {ErrorCode.LIMIT_EXCEEDED, ErrorCode.OPERATION_FAILED, ErrorCode.OUTCOME_UNKNOWN}:
            raise Conflict(error.message) from error
        raise NotFound("There is no such file or folder.") from error


def _require_role(member: Membership, role: Role, act: str) -> None:
    if not member.may(role):
        raise Forbidden(f"Your role ({member.role}) cannot {act}.")


def _compute_seal(doomed: tuple[FolderEntry, ...]) -> str:
    return fingerprint([(entry.path, entry.size, entry.changed_ns) for entry in doomed])[:16]


def _record(member: Membership, action: str, path: str, **payload: Any) -> None:
    """Write the act to the audit, just before it is carried out."""
    entry = audit.NewEntry(f"user:{member.user.get_username()}", action, f"file:{path}", {"path": path, **payload})
    with transaction.atomic():
        audit.append(member.organization_id, [entry])
