"""The architecture of the code: allowed imports, maximum sizes, and forbidden constructs."""

import ast
import re
import sys

import pytest

from tests.source_tree import (
    PRODUCT,
    ROOT,
    Function,
    assert_none,
    is_within,
    length_of,
    modules,
    names_of_ours,
    offences_by_function,
    product,
)

FLOORS = {
    "agents": (
        ("urls", "routing", "api", "admin", "mcp_server"),
        ("web", "worker"),
        ("insight",),
        ("policy", "webhooks"),
        ("gateway", "notices", "standing_grants"),
        ("approvals", "deliveries", "readers", "restores", "triggers"),
        ("approval_rules", "runs"),
        ("employees",),
        ("accounts",),
        ("apps", "platform", "providers"),
    ),
    "tools": (
        ("connections",),
        ("sources", "office"),
        ("builtin", "testing"),
        ("config", "network", "registries", "schedules", "toolbox"),
        ("contract",),
        ("caches", "schemas"),
    ),
}
"""The folders by layer, highest first. A folder imports only from lower layers, so that there are
no cycles.

Lower layers reach higher ones only by events, or by calling functions that higher layers have
registered.
"""
MAX_FLOORS = 10
KEYS_THAT_POINT_UP = {
    "agents/runs/models/approval.py agents.standing_grants": "a card names the standing grant that approved it",
    "tools/connections/models.py agents.accounts": "a source belongs to an organization",
    "tools/office/records/models.py agents.accounts": "a record belongs to an organization",
    "tools/schedules/models.py agents.accounts": "a schedule belongs to an organization",
    "tools/schedules/models.py agents.employees": "a schedule gives its task to an employee",
    "tools/schedules/models.py agents.runs": "a schedule names the last run that it started",
}
"""The foreign keys that may name a model of a higher layer as text; the database checks them."""

PLAIN = ("tools.schemas", "tools.caches", "tools.contract", "tools.toolbox")
"""Plain Python: these packages import only the standard library, each other, and the libraries in
PLAIN_MAY_IMPORT."""
JSON_SCHEMA = {"jsonschema", "jsonschema_specifications", "referencing"}
"""The libraries of JSON Schema, which only `tools.schemas` imports."""
PLAIN_MAY_IMPORT = {"pydantic", "re2", *JSON_SCHEMA}

OFFICE = "tools.office"
"""The office tools, which are part of Gadget, and their data: `agents` and `gadget_site` reach them
only through what the package registers."""

MAX_LINES_OF_A_FILE = 520
MAX_LINES_OF_A_FUNCTION = 60
MAX_LINES_OF_NEARLY_EVERY_FUNCTION = 40
NEARLY_EVERY = 0.95
MAX_ARGUMENTS = 4
MAX_CHARACTERS_OF_A_TEMPLATE_LINE = 120

MANY_ARGUMENTS = {  # besides overrides of a library
    "tools/contract/result.py ToolResult.ok": "the parts of a result, most of them named at each call",
    "tools/contract/errors.py ToolError.__init__": "one for each line of the error's text",
    "tools/network/http_client.py request": "what every HTTP client takes, named at each call",
    "tools/network/http_client.py GuardedClient.request": "an HTTP client's arguments, and whether it may be repeated",
    "tools/toolbox/permissions.py judge_call": "the last three: a missing tool, the origins of values, earlier calls",
}

BROAD_HANDLERS = {
    "tools/toolbox/isolation.py run_isolated": "a tool may fail in any way",
    "agents/worker/jobs.py advance_run": "no failure of a job may end the worker",
    "agents/deliveries/engine.py _send_batch": "whatever fails in one message keeps no other waiting",
    "agents/deliveries/channels/chat.py ChatAddress.send": "whatever apprise raises may hold the address in its text",
    "agents/platform/error_boundary.py log_and_continue": "a background thread or a sweep continues after one failure",
    "agents/platform/database_threads.py beside_event_loop.call.work": "the waiting thread raises it",
    "tools/sources/plugins.py start_plugins": "a third-party package may raise anything when it is imported",
}

JUDGES = re.compile(
    r"_*(find_(\w+_)?(fault|problem|refusal|objection|staleness)|explain_\w+)|_check_\w+"
)
"""Names of functions that judge: their result means yes or no."""

OUTSIDE = ("/home/", "/root/", "/Users/", "/tmp/", "/etc/", "/opt/", "/usr/", "/mnt/", "../", "~/")


def folder_of(name: str) -> str:
    """Return the module's folder directly below the top-level package, or the module itself."""
    return name.split(".")[1]


def floor_of(name: str) -> int | None:
    """Return the number of the module's layer, 0 for the highest; None if FLOORS lacks it."""
    top, *_ = name.split(".")
    floors = {
        folder: number for number, folders in enumerate(FLOORS.get(top, ())) for folder in folders
    }
    return floors.get(folder_of(name))


def points_up(own: str, other: str) -> bool:
    """Return True if `other` is in a layer on which the layer of `own` must not depend."""
    tops = [PRODUCT.index(name.partition(".")[0]) for name in (own, other)]
    if tops[0] != tops[1]:
        return tops[1] < tops[0]
    if folder_of(own) == folder_of(other):
        return False
    mine, theirs = floor_of(own), floor_of(other)
    return mine is not None and theirs is not None and theirs <= mine


# Imports


@pytest.mark.parametrize("top", PRODUCT)
def test_imports_point_only_from_gadget_site_to_agents_to_tools(top: str) -> None:
    forbidden = (*PRODUCT[: PRODUCT.index(top)], "tests")
    offences = [
        f"{module.place}:{line} imports {name}"
        for module in modules()
        if is_within(module.name, top)
        for name, line in module.imports
        if any(is_within(name, package) for package in forbidden)
    ]
    assert_none(offences, f"{top} never imports {', '.join(forbidden)}")


@pytest.mark.parametrize("top", FLOORS)
def test_every_folder_has_a_layer_and_imports_only_from_lower_layers(top: str) -> None:
    offences = []
    for module in modules():
        if not is_within(module.name, top) or module.name == top:
            continue
        if floor_of(module.name) is None:
            offences.append(f"{module.place}:1 is on no floor of FLOORS")
            continue
        offences += [
            f"{module.place}:{line} imports {name}, which is not below {folder_of(module.name)}"
            for name, line in module.imports
            if is_within(name, top) and name != top and points_up(module.name, name)
        ]
    assert_none(
        offences, f"inside {top} a file imports only from its own folder or from a floor below"
    )


def test_only_the_listed_foreign_keys_point_to_a_higher_layer() -> None:
    found = {
        f"{module.place} {'.'.join(name.split('.')[:2])}"
        for module in product()
        for name, _ in module.related
        if points_up(module.name, name)
    }
    offences = [f"{each} is not listed" for each in found - KEYS_THAT_POINT_UP.keys()]
    offences += [f"{each} needs no entry" for each in KEYS_THAT_POINT_UP.keys() - found]
    assert_none(sorted(offences), "only the keys in KEYS_THAT_POINT_UP name a higher layer")


def test_there_are_few_layers_and_each_lists_whole_folders() -> None:
    names = [name for floors in FLOORS.values() for folders in floors for name in folders]
    assert_none(
        [name for name in names if "." in name], "a floor names folders, never a part of one"
    )
    assert all(len(floors) <= MAX_FLOORS for floors in FLOORS.values())


def test_schemas_caches_contract_and_toolbox_are_plain_python() -> None:
    allowed = sys.stdlib_module_names | PLAIN_MAY_IMPORT
    offences = [
        f"{module.place}:{line} imports {name}"
        for module in product()
        if any(is_within(module.name, plain) for plain in PLAIN)
        for name, line in module.imports
        if name.partition(".")[0] not in allowed
        and not any(is_within(name, plain) for plain in PLAIN)
    ]
    assert_none(
        offences,
        f"{', '.join(PLAIN)} import only the standard library, {', '.join(PLAIN_MAY_IMPORT)}",
    )


def test_only_tools_schemas_imports_the_json_schema_libraries() -> None:
    users = [
        (module.name, f"{module.place}:{line} imports {name}")
        for module in product()
        for name, line in module.imports
        if name.partition(".")[0] in JSON_SCHEMA
    ]
    offences = [offence for name, offence in users if not is_within(name, "tools.schemas")]
    assert len(users) > len(offences), "the folder imports them"
    assert_none(offences, "what checks a schema, or a value by one, is in tools/schemas")


def test_other_code_does_not_import_the_office() -> None:
    offences = [
        f"{module.place}:{line} imports {name}"
        for module in product()
        if not is_within(module.name, OFFICE)
        for name, line in module.imports
        if is_within(name, OFFICE)
    ]
    assert_none(offences, f"{OFFICE} is reached only through tools.registries")


def test_there_are_no_import_cycles() -> None:
    imported = {
        module.name: {name for name, _ in module.imports} & names_of_ours() for module in modules()
    }
    done: set[str] = set()

    def find_cycle(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
        if name in path:
            return (*path[path.index(name) :], name)
        if name in done:
            return ()
        found = next(
            filter(None, (find_cycle(below, (*path, name)) for below in sorted(imported[name]))), ()
        )
        done.add(name)
        return found

    cycles = filter(None, (find_cycle(name, ()) for name in sorted(imported)))
    assert_none([" → ".join(cycle) for cycle in cycles], "no import cycles")


def test_imports_are_at_the_top_of_the_file() -> None:
    offences = {
        f"{module.place}:{node.lineno} in {name}"
        for module in modules()
        for name, function in module.functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        # Models can be imported only in `ready`.
        if not (module.path.name == "apps.py" and name.endswith(".ready"))
    }
    assert_none(sorted(offences), "no import inside a function")


# Sizes


def test_files_are_short() -> None:
    lengths = [(module.place, len(module.text.splitlines())) for module in modules()]
    offences = [
        f"{place}: {length} lines" for place, length in lengths if length > MAX_LINES_OF_A_FILE
    ]
    assert_none(offences, f"a file has at most {MAX_LINES_OF_A_FILE} lines")


def test_template_lines_are_short() -> None:
    offences = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > MAX_CHARACTERS_OF_A_TEMPLATE_LINE
    ]
    assert_none(
        offences, f"a template's line has at most {MAX_CHARACTERS_OF_A_TEMPLATE_LINE} characters"
    )


def test_functions_are_short() -> None:
    def judge(_: str, function: Function) -> str:
        return (
            f"{length_of(function)} lines" if length_of(function) > MAX_LINES_OF_A_FUNCTION else ""
        )

    assert_none(
        offences_by_function(judge, modules()),
        f"a function has at most {MAX_LINES_OF_A_FUNCTION} lines",
    )


def test_nearly_every_function_is_very_short() -> None:
    def judge(_: str, function: Function) -> str:
        return (
            f"{length_of(function)} lines"
            if length_of(function) > MAX_LINES_OF_NEARLY_EVERY_FUNCTION
            else ""
        )

    longer = offences_by_function(judge, product())
    allowed = (1 - NEARLY_EVERY) * sum(len(module.functions) for module in product())
    assert_none(
        longer if len(longer) > allowed else [],
        f"{NEARLY_EVERY:.0%} of all functions have at most {MAX_LINES_OF_NEARLY_EVERY_FUNCTION} lines",
    )


def test_functions_take_few_arguments() -> None:
    def judge(place: str, function: Function) -> str:
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        named = [argument.arg for argument in arguments if argument.arg not in {"self", "cls"}]
        excused = place in MANY_ARGUMENTS or any(
            ast.unparse(d) == "override" for d in function.decorator_list
        )
        if place in MANY_ARGUMENTS and len(named) <= MAX_ARGUMENTS:
            return "needs no entry in MANY_ARGUMENTS any more"
        return f"takes {', '.join(named)}" if len(named) > MAX_ARGUMENTS and not excused else ""

    assert_none(
        offences_by_function(judge, product()),
        f"at most {MAX_ARGUMENTS} arguments; more make a dataclass",
    )


def returns_a_verdict_as_text(function: Function) -> bool:
    """Return True if the function's name says that it judges, and it returns text."""
    if JUDGES.fullmatch(function.name) is None:
        return False
    returned = ast.unparse(function.returns).strip("'\"") if function.returns else ""
    results = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    branches = [each for result in results for each in list_branches(result)]
    return returned == "str" or any(ast.unparse(each) == "''" for each in branches)


def list_branches(result: ast.expr | None) -> list[ast.expr]:
    """List the branches of a conditional expression, or the expression itself."""
    if isinstance(result, ast.IfExp):
        return [*list_branches(result.body), *list_branches(result.orelse)]
    return [] if result is None else [result]


def test_functions_that_judge_do_not_return_text() -> None:
    def judge(_: str, function: Function) -> str:
        return "returns a text" if returns_a_verdict_as_text(function) else ""

    assert_none(
        offences_by_function(judge, product()),
        "what judges returns an Objection or None, or `str | None`: an empty text never means yes",
    )


@pytest.mark.parametrize(
    ("head", "is_offence"),
    [
        ("find_fault() -> str", True),
        ("_find_age_fault() -> 'str'", True),
        ("find_address_problem() -> str", True),
        ("find_local_staleness() -> str", True),
        ("explain_drop() -> str", True),
        ("_check_bearer() -> str", True),
        ("_check_bearer() -> Objection | None", False),
        ("find_fault() -> str | None", False),
        ('find_fault() -> str | None: return ""', True),
        ('find_fault() -> str | None: return None if 1 else "" if 2 else "wrong"', True),
        ('find_fault() -> str | None: return "wrong".removeprefix("")', False),
        ("explain_drops() -> Mapping[int, str]", False),
        ("_check_total() -> None", False),
        ("describe_fault() -> str", False),
    ],
)
def test_a_verdict_returned_as_text_is_detected(head: str, is_offence: bool) -> None:
    (function,) = ast.parse(f"def {head if ': ' in head else head + ': ...'}").body
    assert isinstance(function, ast.FunctionDef)
    assert returns_a_verdict_as_text(function) is is_offence


FINDERS = re.compile(r"_*(find|load|list|get|select|has|is|may|can)_(?!or_)\w+")
"""Names of functions that must only read; `find_or_create_…` says that it writes."""
WRITES = re.compile(r"save|delete|create|(get|update)_or_create|bulk_\w+")


def writes_rows(function: Function) -> bool:
    """Return True if the function calls a method that writes rows; an `update` with only keyword
    arguments updates rows, not a dict or set."""
    called = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return any(
        WRITES.fullmatch(call.func.attr)
        or (call.func.attr == "update" and call.keywords and not call.args)
        for call in called
        if isinstance(call.func, ast.Attribute)
    )


def test_finders_do_not_write() -> None:
    def judge(_: str, function: Function) -> str:
        return "writes" if FINDERS.fullmatch(function.name) and writes_rows(function) else ""

    assert_none(
        offences_by_function(judge, product()),
        "a function whose name says that it finds, loads, lists or judges writes no row",
    )


@pytest.mark.parametrize(
    ("head", "is_offence"),
    [
        ("find_row(): row.save()", True),
        ("_load_row(): return Row.objects.get_or_create(pk=1)[0]", True),
        ("list_rows(): rows.filter(pk=1).update(due_at=Now())", True),
        ("has_row(): rows.delete()", True),
        ("get_rows(): rows.bulk_create([])", True),
        ("find_or_create_row(): rows.create()", False),
        ("find_names(): names.update(rows)", False),
        ("record_row(): row.save()", False),
    ],
)
def test_a_finder_that_writes_is_detected(head: str, is_offence: bool) -> None:
    (function,) = ast.parse(f"def {head}").body
    assert isinstance(function, ast.FunctionDef)
    assert bool(FINDERS.fullmatch(function.name) and writes_rows(function)) is is_offence


# Forbidden constructs


def test_every_function_is_annotated() -> None:
    def judge(_: str, function: Function) -> str:
        arguments = function.args
        every = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ]
        bare = [a.arg for a in every if a and a.annotation is None and a.arg not in {"self", "cls"}]
        bare += ["return"] if function.returns is None else []
        return f"no annotation for {', '.join(bare)}" if bare else ""

    assert_none(
        offences_by_function(judge, modules()), "every argument and every result has its type"
    )


def test_every_file_has_a_docstring() -> None:
    silent = [
        module.place
        for module in modules()
        if module.text.strip() and not ast.get_docstring(module.tree)
    ]
    assert_none(silent, "a file opens with one sentence that says what it is for")


def catches_everything(node: ast.AST) -> bool:
    """Return True for `except:`, for `except` with Exception or BaseException, and for `suppress`
    with one of these classes."""
    if isinstance(node, ast.ExceptHandler):
        caught = [node.type]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        caught = [*node.args]
    else:
        return False
    flat = [part for one in caught for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
    return any(part is None or ast.unparse(part) in {"Exception", "BaseException"} for part in flat)


def test_only_the_listed_places_catch_everything() -> None:
    found = []
    for module in product():
        nodes = [(name, node) for name, function in module.functions for node in ast.walk(function)]
        named = {id(node): name for name, node in nodes}
        found += [
            (f"{module.place} {named.get(id(node), '')}", node.lineno)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ExceptHandler | ast.Call) and catches_everything(node)
        ]
    offences = [f"{place}, line {line}" for place, line in found if place not in BROAD_HANDLERS]
    offences += [
        f"{place} needs no entry any more"
        for place in BROAD_HANDLERS.keys() - {place for place, _ in found}
    ]
    assert_none(offences, f"broad handlers are only in: {', '.join(BROAD_HANDLERS)}")


def count_climbs(node: ast.AST) -> int:
    """Return the number of folders by which an expression such as `Path(__file__).parent.parent` or
    `.parents[1]` goes up; 0 for other nodes."""
    if isinstance(node, ast.Attribute):
        return count_climbs(node.value) + (node.attr == "parent")
    if isinstance(node, ast.Call):
        return count_climbs(node.func)
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "parents"
    ):
        index = node.slice.value if isinstance(node.slice, ast.Constant) else 0
        return count_climbs(node.value) + (index + 1 if isinstance(index, int) else 1)
    return 0


def test_code_does_not_read_files_outside_the_project() -> None:
    offences = []
    for module in product():
        depth = len(module.path.relative_to(ROOT).parts)
        for node in ast.walk(module.tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and node.value.startswith(OUTSIDE)
            ):
                offences.append(f"{module.place}:{node.lineno} names {node.value!r}")
            elif isinstance(node, ast.Attribute | ast.Subscript) and count_climbs(node) > depth:
                offences.append(
                    f"{module.place}:{node.lineno} climbs out of the project: {ast.unparse(node)}"
                )
            elif isinstance(node, ast.Attribute) and ast.unparse(node) == "Path.home":
                offences.append(f"{module.place}:{node.lineno} reads the home folder")
    assert_none(offences, "the project reads nothing outside its own folder")
