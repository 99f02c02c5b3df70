"""Errors of the API, all sent as application/problem+json."""

import functools
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import DataError, InterfaceError, InternalError, OperationalError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    RawPostDataException,
    UnreadablePostError,
)
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from agents.platform.database_outages import UNREACHABLE, describe_outage
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
FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
ARGUMENT_NAMES = frozenset({"payload", "filters"})
RETRY_AFTER_S = 2

View = Callable[..., HttpResponseBase]


def build_problem(status: int, detail: str, code: str = "", **extra: Any) -> HttpResponse:
    """Return a problem document: type, title, status, detail, code, and the fields of `extra`."""
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


def register_problem_responses(api: NinjaAPI) -> None:
    """Register a response for every exception that an operation may raise."""
    responses: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        Refusal: _respond_to_refusal,
        ValidationError: _respond_invalid,
        AuthenticationError: _respond_login_required,
        HttpError: _respond_to_http_error,
        Http404: _respond_not_found,
        RequestDataTooBig: _respond_too_large,
        RawPostDataException: _respond_not_json,
        UnreadablePostError: _respond_cut_off,
        OperationalError: _respond_database_away,
        InterfaceError: _respond_database_away,
        InternalError: _respond_database_away,
        DataError: _respond_unstorable,
        Exception: _respond_unexpected,
    }
    for kind, response in responses.items():
        api.add_exception_handler(kind, response)


def wrap_with_problems(view: View) -> View:
    """Wrap a view so that ninja's own errors become problems, HEAD works like GET, and no response
    is cached."""

    @functools.wraps(view)
    def call_view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        method = request.method
        if method == "HEAD":
            request.method = "GET"
        try:
            response = view(request, *args, **kwargs)
        except Http404 as error:
            response = _respond_not_found(request, error)
        finally:
            request.method = method
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response = _respond_not_allowed(method or "", response["Allow"])
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return call_view


def _respond_to_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    extra = dict(refusal.extra)
    wait_s = extra.pop("retry_after", None)
    response = build_problem(refusal.status, refusal.detail, refusal.code, **extra)
    if wait_s is not None:
        response["Retry-After"] = str(wait_s)
    return response


def _respond_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [
        {"field": _name_field(fault["loc"]), "detail": fault["msg"].removeprefix("Value error, ")}
        for fault in error.errors
    ]
    first = faults[0]
    detail = f"{first['field']}: {first['detail']}"
    return build_problem(422, detail, "invalid", field=first["field"], errors=faults)


def _name_field(place: tuple[str | int, ...]) -> str:
    """Return the field's name as the client wrote it, e.g. `decisions.0.digest`; `body` for the
    whole body."""
    source, *parts = [str(part) for part in place]
    if parts and parts[0] in ARGUMENT_NAMES:
        parts = parts[1:]
    return ".".join(parts) or source


def _respond_login_required(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return build_problem(
        401,
        "Log in, or send a valid token as 'Authorization: Bearer TOKEN'. Agents send their key instead.",
    )


def _respond_to_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    cause = error.__cause__
    if isinstance(cause, RequestDataTooBig):
        return _respond_too_large(request, cause)
    if isinstance(cause, RecursionError):
        return build_problem(400, "The body is nested too deeply.")
    if isinstance(cause, ValueError) and request.content_type in FORM_TYPES:
        return build_problem(
            415, f"Send the body as application/json, not as {request.content_type}."
        )
    if isinstance(cause, ValueError):
        return build_problem(400, f"The body is not JSON: {cause}.")
    return build_problem(error.status_code, error.message)


def _respond_not_found(request: HttpRequest, error: Exception) -> HttpResponse:
    return build_problem(
        404, f"There is nothing at {request.path!r}. See /api/docs for all routes."
    )


def _respond_not_allowed(method: str, allowed: str) -> HttpResponse:
    response = build_problem(405, f"{method} is not allowed here. Use {allowed}.")
    response["Allow"] = allowed
    return response


def _respond_too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return build_problem(413, "The body is larger than this installation accepts.")


def _respond_not_json(request: HttpRequest, error: RawPostDataException) -> HttpResponse:
    return build_problem(415, "Send the body as application/json.")


def _respond_cut_off(request: HttpRequest, error: UnreadablePostError) -> HttpResponse:
    return build_problem(400, "The body ended too early. Send it again.")


def _respond_database_away(request: HttpRequest, error: Exception) -> HttpResponse:
    condition = describe_outage(error)
    if not condition and isinstance(error, InternalError):
        return _respond_unexpected(request, error)
    log.error("database away", path=request.path, exc_info=error)
    response = build_problem(503, f"{condition or UNREACHABLE} Try again.", "database_away")
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _respond_unstorable(request: HttpRequest, error: DataError) -> HttpResponse:
    log.error("value refused by the database", path=request.path, exc_info=error)
    return build_problem(
        422, "The request contains a value that the database cannot store or look up.", "invalid"
    )


def _respond_unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("request failed", path=request.path, method=request.method, exc_info=error)
    return build_problem(
        500, "Something went wrong in Gadget. The error is in its log.", "internal_error"
    )
