"""The organization's shared folder, where people list, upload, download and delete files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
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
from django.utils.http import urlencode

from agents.accounts import audit
from agents.accounts.models import Membership, Role
from agents.platform.database_connections import release_connection
from agents.platform.refusals import Conflict, Forbidden, NotFound
from agents.web.text.safe_text import quote_outside
from agents.web.views.pages import as_download, member_view, render_page
from tools.contract import ErrorCode, ToolError, fingerprint
from tools.registries.files import FILE_STORE, FolderEntry, Names, StagedFile, join_path

PAGE_SIZE = 200
MAX_UPLOAD_SIZE = 100_000_000
MAX_SHOWN = 50
MAX_NAMED = 20
_PART_SIZE = 1 << 16


@member_view("GET")
def file_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the folder of `?folder=`: first its subfolders, then its files, both sorted by name."""
    with _refuse_path_errors():
        return _render_list(
            request, member, FILE_STORE.get().parse_path(request.GET.get("folder", ""))
        )


@member_view("POST", page="files")
def upload(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Store the files and show their folder with a report; if all are refused, show the reasons."""
    _require_role(member, Role.OPERATOR, "upload files")
    folder = request.POST.get("folder", "")
    uploads = [file for file in request.FILES.getlist("files") if isinstance(file, UploadedFile)]
    try:
        names = FILE_STORE.get().parse_path(folder)
    except ToolError as error:
        return _render_invalid_form(
            request, member, f"{error.message} Nothing was uploaded.", folder
        )
    if not uploads:
        return _render_invalid_form(request, member, "Choose at least one file.", folder)
    outcomes = [_store_upload(member, folder, file) for file in uploads]
    target = names if FILE_STORE.get().is_folder(member.organization_id, names) else ()
    if all(outcome.problem is not None for outcome in outcomes):
        response = _render_list(request, member, target, refused=outcomes, folder=folder)
        response.status_code = 422
        return response
    _add_messages(request, outcomes)
    return redirect(_build_address(target))


@member_view("GET")
def download(_request: HttpRequest, member: Membership, path: str) -> HttpResponseBase:
    """Download a file, always as an attachment, so that the browser never displays it."""
    with _refuse_path_errors():
        names = FILE_STORE.get().parse_file_path(path)
        file = FILE_STORE.get().open_file(member.organization_id, names)
    stream = _FileStream(file)
    response = StreamingHttpResponse(stream, content_type="application/octet-stream")
    response["Content-Length"] = str(stream.remaining)
    response["X-Content-Type-Options"] = "nosniff"
    return as_download(response, names[-1])


@member_view("POST", page="files")
def delete_file(request: HttpRequest, member: Membership, path: str) -> HttpResponseBase:
    """Show the files to delete; the same form with `confirmed` deletes exactly these files."""
    with _refuse_path_errors():
        names = FILE_STORE.get().parse_file_path(path)
    _require_role(member, Role.APPROVER, "delete files")
    with _refuse_path_errors():
        deletions = FILE_STORE.get().list_deletions(member.organization_id, names)
    if request.POST.get("confirmed") != _compute_fingerprint(deletions):
        context = {
            "path": join_path(names),
            "deletions": deletions[:MAX_SHOWN],
            "total": len(deletions),
            "fingerprint": _compute_fingerprint(deletions),
            "parent_folder": join_path(names[:-1]),
        }
        return render_page(request, member, "files/confirm.html", context)

    def confirm(found: tuple[FolderEntry, ...]) -> None:
        if found != deletions:
            raise Conflict(
                "The files just changed. Nothing was deleted. Check the list and try again."
            )
        paths = [entry.path for entry in found]
        _record_in_audit(
            member, "file_deleted", join_path(names), files=len(paths), paths=paths[:MAX_SHOWN]
        )

    path = quote_outside(join_path(names))
    release_connection()  # the write may wait for other writers
    with _refuse_path_errors():
        FILE_STORE.get().delete_files(member.organization_id, names, confirm)
    if FILE_STORE.get().is_folder(member.organization_id, names):
        messages.warning(
            request,
            f"The files in {path} were deleted. The folder was kept because it is not empty.",
        )
    else:
        messages.success(request, f"{path} was deleted.")
    return redirect(_build_address(names[:-1]))


# The list


@dataclass(frozen=True)
class FileRow:
    """A file or folder as a row of the list."""

    entry: FolderEntry

    @property
    def changed_at(self) -> datetime:
        return datetime.fromtimestamp(self.entry.changed_ns / 1e9, UTC)

    @property
    def address(self) -> str:
        """The address of the folder's page; empty for a file."""
        return _build_address(self.entry.names) if self.entry.is_folder else ""


@dataclass(frozen=True)
class UploadOutcome:
    """The outcome of one upload; `problem` is the reason for a refusal, or None."""

    name: str
    problem: str | None = None


def _render_list(
    request: HttpRequest, member: Membership, names: Names, **extra: Any
) -> HttpResponse:
    listing = FILE_STORE.get().list_folder(member.organization_id, names)
    pages = Paginator([FileRow(entry) for entry in listing.entries], PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    context = {
        "rows": pages,
        "folder": join_path(names),
        "breadcrumbs": [
            (name, _build_address(names[: depth + 1])) for depth, name in enumerate(names)
        ],
        "skipped": listing.passed_over,
        "may_upload": member.may(Role.OPERATOR),
        "may_delete": member.may(Role.APPROVER),
        "max_file_mb": FILE_STORE.get().largest_file // 1_000_000,
        "max_upload_mb": MAX_UPLOAD_SIZE // 1_000_000,
        "max_files": f"{FILE_STORE.get().max_files:,}",
        "refused": (),
        "problem": "",
    }
    return render_page(request, member, "files/list.html", context | extra)


def _render_invalid_form(
    request: HttpRequest, member: Membership, problem: str, folder: str
) -> HttpResponse:
    response = _render_list(request, member, (), problem=problem, folder=folder)
    response.status_code = 422
    return response


def _build_address(names: Names) -> str:
    query = f"?{urlencode({'folder': join_path(names)})}" if names else ""
    return reverse("files") + query


# Upload


def _store_upload(member: Membership, folder: str, upload: UploadedFile[bytes]) -> UploadOutcome:
    """Store one file; never replace an existing file."""
    name = upload.name or ""
    path = f"{folder}/{name}" if folder else name

    def confirm(staged: StagedFile) -> None:
        if staged.replaces is not None:
            raise ToolError(
                ErrorCode.INVALID_OPERATION,
                "A file with this name already exists.",
                attempted=False,
            )
        _record_in_audit(
            member, "file_uploaded", join_path(names), size=staged.size, sha256=staged.sha256
        )

    try:
        names = FILE_STORE.get().parse_file_path(path)
        release_connection()  # because write_file may wait for other writers
        FILE_STORE.get().write_file(member.organization_id, names, _read_chunks(upload), confirm)
    except ToolError as error:
        return UploadOutcome(name, error.message)
    return UploadOutcome(name)


def _add_messages(request: HttpRequest, outcomes: list[UploadOutcome]) -> None:
    """Add messages for the next page: the uploaded files, and the reason for each refused file."""
    for outcome in outcomes:
        if outcome.problem is not None:
            messages.error(
                request, f"{quote_outside(outcome.name)} was not uploaded: {outcome.problem}"
            )
    stored = [quote_outside(outcome.name) for outcome in outcomes if outcome.problem is None]
    named = ", ".join(stored[:MAX_NAMED]) + (
        f" and {len(stored) - MAX_NAMED} more" if len(stored) > MAX_NAMED else ""
    )
    messages.success(request, f"{named} {'was' if len(stored) == 1 else 'were'} uploaded.")


def _read_chunks(upload: UploadedFile[bytes]) -> Iterable[bytes]:
    chunks: Iterable[bytes] = upload.chunks()
    return chunks


# Download


class _FileStream:
    """The contents of an open file, read in parts; the response closes it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.remaining = file.seek(0, 2)
        file.seek(0)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.remaining > 0 and (
            part := await sync_to_async(self._file.read)(min(_PART_SIZE, self.remaining))
        ):
            self.remaining -= len(part)
            yield part

    def close(self) -> None:
        self._file.close()


# Checks and the audit


@contextmanager
def _refuse_path_errors() -> Iterator[None]:
    """Turn a path error into NotFound, and a limit or a failed operation into Conflict."""
    try:
        yield
    except ToolError as error:
        if error.code in {
            ErrorCode.LIMIT_EXCEEDED,
            ErrorCode.OPERATION_FAILED,
            ErrorCode.OUTCOME_UNKNOWN,
        }:
            raise Conflict(error.message) from error
        raise NotFound("There is no such file or folder.") from error


def _require_role(member: Membership, role: Role, action: str) -> None:
    if not member.may(role):
        raise Forbidden(f"Your role ({member.role}) cannot {action}.")


def _compute_fingerprint(deletions: tuple[FolderEntry, ...]) -> str:
    return fingerprint([(entry.path, entry.size, entry.changed_ns) for entry in deletions])[:16]


def _record_in_audit(member: Membership, action: str, path: str, **payload: Any) -> None:
    """Append the action to the audit, just before it is carried out."""
    with transaction.atomic():
        audit.record(member, action, f"file:{path}", path=path, **payload)
