"""The tool contract in plain Python, shared by everything that builds, judges or runs tools."""

from tools.contract.canonical import (
    build_signature,
    canonical_json,
    find_unstorable,
    fingerprint,
    make_storable,
    parse_arguments,
    storable_json,
)
from tools.contract.context import Person, ToolContext
from tools.contract.declarations import Example, InvalidTool, name_class
from tools.contract.embedded_requests import find_embedded_requests
from tools.contract.environment import SHORTEST_SECRET, Environment, collect_secrets
from tools.contract.errors import (
    INDEFINITE_CODES,
    REPEATABLE_CODES,
    ErrorCode,
    ToolError,
    format_error,
)
from tools.contract.fence import Fence, check_fence, fencing
from tools.contract.function import FunctionTool, tool
from tools.contract.level import Level
from tools.contract.limits import RateLimit
from tools.contract.named_hosts import find_address_params, find_named_hosts
from tools.contract.network_access import HostPort, NetworkAccess, PrivateHost, PrivateHosts
from tools.contract.params import NoParams
from tools.contract.preview import NO_PREVIEW, REFUSED, NothingToDo, Preview, Target
from tools.contract.recipe import Recipe, Step
from tools.contract.result import (
    JSON_TYPE,
    KeptFile,
    ResultError,
    ResultFile,
    ToolResult,
    find_media_type,
    list_result_parts,
    read_kept_files,
)
from tools.contract.services import (
    KNOWN_SERVICES,
    GitHubAccount,
    GoogleSearchAccount,
    Services,
    SlackAccount,
)
from tools.contract.suspension import Delegation, Question, Steps, Suspend
from tools.contract.tool import Parameter, Tool, name_category, name_tool

__all__ = [
    "INDEFINITE_CODES",
    "JSON_TYPE",
    "KNOWN_SERVICES",
    "NO_PREVIEW",
    "REFUSED",
    "REPEATABLE_CODES",
    "SHORTEST_SECRET",
    "Delegation",
    "Environment",
    "ErrorCode",
    "Example",
    "Fence",
    "FunctionTool",
    "GitHubAccount",
    "GoogleSearchAccount",
    "HostPort",
    "InvalidTool",
    "KeptFile",
    "Level",
    "NetworkAccess",
    "NoParams",
    "NothingToDo",
    "Parameter",
    "Person",
    "Preview",
    "PrivateHost",
    "PrivateHosts",
    "Question",
    "RateLimit",
    "Recipe",
    "ResultError",
    "ResultFile",
    "Services",
    "SlackAccount",
    "Step",
    "Steps",
    "Suspend",
    "Target",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "build_signature",
    "canonical_json",
    "check_fence",
    "collect_secrets",
    "fencing",
    "find_address_params",
    "find_embedded_requests",
    "find_media_type",
    "find_named_hosts",
    "find_unstorable",
    "fingerprint",
    "format_error",
    "list_result_parts",
    "make_storable",
    "name_category",
    "name_class",
    "name_tool",
    "parse_arguments",
    "read_kept_files",
    "storable_json",
    "tool",
]
