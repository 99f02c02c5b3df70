"""Build the errors for unusable responses, and hints for the model in the next request."""

from agents.providers.base import ProviderError, Usage

CALL_AS_TEXT = "call_as_text"
MISSING_CALL = "missing_call"
EMPTY_RESPONSE = "empty_answer"
MAX_TRIES = 2
"""The maximum number of attempts if another request rarely leads to a better response."""
MAX_TRIES_IF_BROKEN = 3
_HINTS = {
    CALL_AS_TEXT: "Your last response was a tool call written as text, so nothing was run. Call the tool through your "
    "interface for tools, or answer in plain words without writing out a call.",
    MISSING_CALL: "Your last response announced a tool call but contained none. Call the tool, or answer in plain "
    "words.",
    EMPTY_RESPONSE: "Your last response was empty. Call a tool, or answer in plain words.",
}
_REMEDY = (
    "Start the model's server with a tool parser for this model (vLLM: --enable-auto-tool-choice and "
    "--tool-call-parser, SGLang: --tool-call-parser, llama.cpp: --jinja). Or choose another model."
)


def find_hint(code: str) -> str:
    """Return the hint for the model after a response failed with this code; empty if no hint
    helps."""
    return _HINTS.get(code, "")


def build_useless_error(
    code: str, message: str, usage: Usage | None, most_tries: int = 0
) -> ProviderError:
    """Build the error for a response that cannot be used; `most_tries` is the maximum number of
    attempts, or 0 if there is no retry."""
    error = ProviderError(code, message, transient=bool(most_tries))
    error.usage, error.most_tries = usage, most_tries
    return error


def build_text_call_error(tool: str, usage: Usage) -> ProviderError:
    """Build the error for a call of the tool that the model wrote as text."""
    message = f"The model wrote its call of {tool} as text, so nothing was run. {_REMEDY}"
    return build_useless_error(CALL_AS_TEXT, message, usage, MAX_TRIES)


def build_missing_call_error(usage: Usage) -> ProviderError:
    """Build the error for a response that announces calls but contains none."""
    message = f"The model announced a tool call, but its server sent none. {_REMEDY}"
    return build_useless_error(MISSING_CALL, message, usage, MAX_TRIES)


def build_empty_error(usage: Usage, *, has_thought: bool) -> ProviderError:
    """Build the error for a response with neither text nor calls."""
    what = (
        "The model thought, but gave no response"
        if has_thought
        else "The model gave an empty response"
    )
    return build_useless_error(
        EMPTY_RESPONSE,
        f"{what}. Try again, or choose another model for this employee",
        usage,
        MAX_TRIES,
    )
