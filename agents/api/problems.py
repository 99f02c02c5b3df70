"""Errors as application/problem+json: whatever goes wrong under /api/ is answered in this one form."""

import functools
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import DataError, InterfaceError, InternalError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, RawPostDataException, UnreadablePostError
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from agents.platform.database_condition import LOST, condition_of
from agents.platform.refusals import Refusal

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
CODES = {
    400: "bad_request",
    401: "login_required",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    429: "too_many_requests",
}
WITHOUT_JSON = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
NAMES_OF_ARGUMENTS = frozenset({"payload", "filters"})
RETRY_WHEN_DATABASE_IS_BACK_S = 2

View = Callable[..., HttpResponseBase]


def problem(status: int, detail: str, code: str = "", **extra: Any) -> HttpResponse:
    """A problem document: type, title, status, detail, code, and what `extra` adds."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code or CODES.get(status, "error"),
        **extra,
    }
    response = JsonResponse(body, status=status, content_type=CONTENT_TYPE)
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    return response


def answer_in_problems(api: NinjaAPI) -> None:
    """Registers the answers to everything that an operation may raise."""
    answers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        Refusal: _refused,
        ValidationError: _invalid,
        AuthenticationError: _not_logged_in,
        HttpError: _http_error,
        Http404: _not_there,
        RequestDataTooBig: _too_large,
        RawPostDataException: _not_json,
        UnreadablePostError: _cut_off,
        OperationalError: _database_away,
        InterfaceError: _database_away,
        InternalError: _database_away,
        DataError: _unstorable,
        Exception: _unexpected,
    }
    for kind, answer in answers.items():
        api.add_exception_handler(kind, answer)


def with_problems(view: View) -> View:
    """The view with problems for what ninja answers by itself, HEAD wherever GET is, and nothing kept in caches."""

    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        asked = request.method
        if asked == "HEAD":
            request.method = "GET"
        try:
            response = view(request, *args, **kwargs)
        except Http404 as error:
            response = _not_there(request, error)
        finally:
            request.method = asked
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response = _not_allowed(asked or "", response["Allow"])
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return wrapped


def _refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    extra = dict(refusal.extra)
    wait_s = extra.pop("retry_after", None)
    response = problem(refusal.status, refusal.detail, refusal.code, **extra)
    if wait_s is not None:
        response["Retry-After"] = str(wait_s)
    return response


def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [
        {"field": _field_of(fault["loc"]), "detail": fault["msg"].removeprefix("Value error, ")}
        for fault in error.errors
    ]
    first = faults[0]
    detail = f"{first['field']}: {first['detail']}"
    return problem(422, detail, "invalid", field=first["field"], errors=faults)


def _field_of(place: tuple[str | int, ...]) -> str:
    """The field's name as the client wrote it, e.g. `decisions.0.digest`; `body` for the whole of it."""
    source, *parts = [str(part) for part in place]
    if parts and parts[0] in NAMES_OF_ARGUMENTS:
        parts = parts[1:]
    return ".".join(parts) or source


def _not_logged_in(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return problem(401, "Log in, or send a valid API token as 'Authorization: Bearer TOKEN'.")


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    cause = error.__cause__
    if isinstance(cause, RequestDataTooBig):
        return _too_large(request, cause)
    if isinstance(cause, RecursionError):
        return problem(400, "The body is nested too deeply.")
    if isinstance(cause, ValueError) and request.content_type in WITHOUT_JSON:
        return problem(415, f"Send the body as application/json, not as {request.content_type}.")
    if isinstance(cause, ValueError):
        return problem(400, f"The body is not JSON: {cause}.")
    return problem(error.status_code, error.message)


def _not_there(request: HttpRequest, error: Exception) -> HttpResponse:
    return problem(404, f"There is nothing at {request.path!r}; /api/docs lists what there is.")


def _not_allowed(method: str, allowed: str) -> HttpResponse:
    response = problem(405, f"{method} is not possible here, only {allowed}.")
    response["Allow"] = allowed
    return response


def _too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problem(413, "The body is larger than this installation accepts.")


def _not_json(request: HttpRequest, error: RawPostDataException) -> HttpResponse:
    return problem(415, "Send the body as application/json.")


def _cut_off(request: HttpRequest, error: UnreadablePostError) -> HttpResponse:
    return problem(400, "The body ended too early.")


def _database_away(request: HttpRequest, error: Exception) -> HttpResponse:
    condition = condition_of(error)
    if not condition and isinstance(error, InternalError):
        return _unexpected(request, error)
    log.error("database away", path=request.path, exc_info=error)
    response = problem(503, f"{condition or LOST} Try again.", "database_away")
    response["Retry-After"] = str(RETRY_WHEN_DATABASE_IS_BACK_S)
    return response


def _unstorable(request: HttpRequest, error: DataError) -> HttpResponse:
    log.error("value refused by the database", path=request.path, exc_info=error)
    return problem(422, "The request holds a value that no database can keep or look up.", "invalid")


def _unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("request failed", path=request.path, method=request.method, exc_info=error)
    return problem(500, "Something went wrong on our side; it was logged.", "internal_error")
