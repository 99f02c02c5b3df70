"""The project's source files, parsed for the tests that check them."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("gadget_site", "agents", "tools")
"""Packages, highest first: each may import the packages after it."""
NOT_OURS = frozenset({"migrations", "node_modules"})
"""Folders whose code is generated or third-party."""
RELATIONS = ("ForeignKey", "OneToOneField", "ManyToManyField")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One source file, parsed."""

    path: Path
    name: str
    text: str
    tree: ast.Module

    @property
    def place(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        """Every function with its qualified name, including nested functions."""
        return list(functions_in(self.tree, ""))

    @cached_property
    def imports(self) -> list[tuple[str, int]]:
        """(module, line) for every import, including imports inside functions. For `from package
        import module`, this is the imported module."""
        found: list[tuple[str, int]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = self.absolute(node)
                names = [f"{base}.{alias.name}" for alias in node.names]
                found += [
                    (name if name in names_of_ours() else base, node.lineno) for name in names
                ]
        return found

    @cached_property
    def related(self) -> list[tuple[str, int]]:
        """(module, line) for every foreign key that names its model as text, such as `runs.Run`,
        and therefore needs no import."""
        keys = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(RELATIONS)
        ]
        named = [
            (to.value, key.lineno)
            for key in keys
            for to in (*key.args[:1], *(each.value for each in key.keywords if each.arg == "to"))
            if isinstance(to, ast.Constant) and isinstance(to.value, str)
        ]
        places = modules_of_models()
        return [(places[name.rpartition(".")[2]], line) for name, line in named if name != "self"]

    def absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        above = self.package.split(".")
        kept = above[: len(above) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)


def functions_in(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield f"{prefix}{child.name}", child
            yield from functions_in(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from functions_in(child, f"{prefix}{child.name}.")
        else:
            yield from functions_in(child, prefix)


@cache
def paths() -> tuple[Path, ...]:
    folders = [ROOT / name for name in (*PRODUCT, "tests")]
    found = [
        path
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        if not NOT_OURS & set(path.parts)
    ]
    return (*found, ROOT / "manage.py")


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def names_of_ours() -> frozenset[str]:
    return frozenset(name_of(path) for path in paths())


@cache
def modules() -> tuple[Module, ...]:
    read = [(path, path.read_text(encoding="utf-8")) for path in paths()]
    return tuple(
        Module(path, name_of(path), text, ast.parse(text, str(path))) for path, text in read
    )


@cache
def product() -> tuple[Module, ...]:
    return tuple(module for module in modules() if not module.name.startswith("tests"))


@cache
def modules_of_models() -> dict[str, str]:
    """Return the module of each model, by the name of its class."""
    return {
        node.name: module.name
        for module in product()
        if "models" in module.name.split(".")
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def assert_none(offences: list[str], rule: str) -> None:
    assert not offences, f"{rule}\n  " + "\n  ".join(offences)


def offences_by_function(
    judge: Callable[[str, Function], str], among: tuple[Module, ...]
) -> list[str]:
    """List `file:line name: fault` for each function with a fault; the judge gets "file name" and
    the function."""
    judged = (
        (module, name, function, judge(f"{module.place} {name}", function))
        for module in among
        for name, function in module.functions
    )
    return [
        f"{module.place}:{function.lineno} {name}: {fault}"
        for module, name, function, fault in judged
        if fault
    ]


def length_of(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1
