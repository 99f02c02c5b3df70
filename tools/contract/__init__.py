"""What a tool is: plain Python, known to everything that makes, judges or runs tools."""

from .addresses import address_params, named_hosts
from .canonical import (
    canonical_json,
    fingerprint,
    made_storable,
    parse_arguments,
    signature_of,
    storable_json,
    unstorable_in,
)
from .context import Person, ToolContext
from .environment import SHORTEST_SECRET, Environment, secrets_of
from .errors import INDEFINITE_CODES, REPEATABLE_CODES, ErrorCode, ToolError, format_error
from .function import FunctionTool, tool
from .inner_requests import inner_requests
from .last_look import LastLook, look_before_request, looking
from .level import Level
from .limits import RateLimit
from .preview import Preview, Target
from .reach import HostPort, PrivateHost, PrivateHosts, Reach
from .recipe import Recipe, Step
from .result import ResultError, ToolResult
from .schema import NoParams
from .suspend import Delegation, Question, Steps, Suspend
from .tool import Parameter, Tool

__all__ = [
    "INDEFINITE_CODES",
    "REPEATABLE_CODES",
    "SHORTEST_SECRET",
    "Delegation",
    "Environment",
    "ErrorCode",
    "FunctionTool",
    "HostPort",
    "LastLook",
    "Level",
    "NoParams",
    "Parameter",
    "Person",
    "Preview",
    "PrivateHost",
    "PrivateHosts",
    "Question",
    "RateLimit",
    "Reach",
    "Recipe",
    "ResultError",
    "Step",
    "Steps",
    "Suspend",
    "Target",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "address_params",
    "canonical_json",
    "fingerprint",
    "format_error",
    "inner_requests",
    "look_before_request",
    "looking",
    "made_storable",
    "named_hosts",
    "parse_arguments",
    "secrets_of",
    "signature_of",
    "storable_json",
    "tool",
    "unstorable_in",
]
