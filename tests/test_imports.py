"""The direction of imports: the engine left to right, operators on public names only; and module length."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

# Each engine module imports only from its left.
ENGINE_ORDER = (
    "exports",
    "version",
    "wholeness",
    "values.counters",
    "values.display",
    "config.entry_points",
    "config.folders",
    "config.masking",
    "source",
    "errors",
    "relation",
    "plan",
    "builder",
    "values.json",
    "values.patterns",
    "values.quantities",
    "values.text",
    "values.coercion",
    "config.secrets",
    "config.sections",
    "config.configuration",
    "processes.frames",
    "processes.sealing",
    "runtime.events",
    "runtime.room",
    "runtime.disk",
    "runtime.memory",
    "runtime.temporary_files",
    "runtime.outlet",
    "runtime.signals",
    "runtime.spill",
    "runtime.shielded",
    "runtime.sqlite",
    "runtime.outputs",
    "runtime.stream",
    "runtime.budget",
    "authoring.context",
    "authoring.concurrency",
    "authoring.function",
    "authoring.services",
    "authoring.setting",
    "authoring.operator",
    "authoring.descriptor",
    "files",
    "values.cells",
    "processes.pool",
    "runtime.account",
    "compiler.callgraph",
    "compiler.parameters",
    "compiler.resolution",
    "compiler.fitting",
    "compiler.wiring",
    "compiler.findings",
    "compiler.analysis",
    "compiler.declarations",
    "compiler.naming",
    "compiler.reachability",
    "compiler.step",
    "compiler.stores",
    "compiler.check",
    "compiler.graph",
    "runtime.failures",
    "runtime.report",
    "runtime.session",
    "runtime.activation",
    "runtime.checkpoints",
    "runtime.inline_step",
    "runtime.recursion",
    "runtime.statistics",
    "runtime.operator_step",
    "runtime.step_context",
    "runtime.tail_loop",
    "runtime.calls",
    "runtime.run",
    "runtime.results",
    "engine",
)
ENGINE_PACKAGES = ("values", "config", "authoring", "compiler", "runtime", "processes")
# Not engine modules: the list of public names, and the door to the command line.
DOORS = ("__init__", "__main__")
# Where operators may import public names from, besides each other: packages that list them, and the
# modules that are written for operators' authors.
OPERATORS_MAY_IMPORT = (
    "aioflow",
    "aioflow.crawl",
    "aioflow.expressions",
    "aioflow.grammars",
    "aioflow.hidden",
    "aioflow.messages",
    "aioflow.service",
    "aioflow.state",
    "aioflow.web",
    "aioflow.wrappers",
    "aioflow.xml",
    "aioflow.xquery",
)
AUTHORS_MODULES = (
    "authoring.concurrency",
    "authoring.context",
    "authoring.function",
    "authoring.operator",
    "authoring.services",
    "authoring.setting",
    "config.entry_points",
    "errors",
    "files",
    "relation",
    "runtime.memory",
    "runtime.spill",
    "runtime.stream",
    "values.cells",
    "values.coercion",
    "values.display",
    "values.quantities",
    "wholeness",
)
# Folders that are importable in a checkout only.
CHECKOUT_ONLY = ("operators", "plans", "tests", "benchmarks")
LINES_AT_MOST = 600

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Import:
    """`from module import name`, or `import module` when there is no name."""

    line: int
    module: str
    name: str | None = None


def imports_in(tree: ast.AST, package: str) -> Iterator[Import]:
    """Every import at any depth, those for type checkers too; relative ones resolved against `package`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(node.lineno, module, alias.name)


def engine_violations(module: str, source: str, order: tuple[str, ...] = ENGINE_ORDER) -> list[str]:
    """What an engine module imports from aioflow other than modules to its left."""
    if module not in order:
        return [f"aioflow.{module} has no place in ENGINE_ORDER"]
    allowed = order[: order.index(module)]
    found = []
    for each in imports_in(ast.parse(source), "aioflow"):
        top, _, rest = each.module.partition(".")
        target = rest or each.name or "aioflow"
        if top == "aioflow" and target not in allowed:
            found.append(f"aioflow.{module}, line {each.line}: imports {target}, which is not to its left")
    return found


def operator_violations(file: str, source: str, public: dict[str, set[str]]) -> list[str]:
    """What an operator module imports from aioflow other than public names."""
    found = []
    for each in imports_in(ast.parse(source), "aioflow.operators"):
        if each.module.partition(".")[0] != "aioflow" or within(each, "aioflow.operators"):
            continue
        if each.module.removeprefix("aioflow.") in AUTHORS_MODULES and not (each.name or "").startswith("_"):
            continue
        names = public.get(each.module, set())
        if each.module not in public or (each.name is not None and each.name not in names):
            wanted = each.module if each.name is None else f"{each.module}.{each.name}"
            found.append(f"{file}:{each.line}: imports {wanted}, which is not a public name for operators")
    return found


def within(each: Import, package: str) -> bool:
    full = f"{each.module}.{each.name}"
    return f"{each.module}.".startswith(f"{package}.") or full == package


def checkout_violations(file: str, package: str, source: str) -> list[str]:
    """Imports by a name that exists in a checkout but not in an installed package."""
    return [
        f"{file}:{each.line}: imports {each.module}, which no wheel has at its top level"
        for each in imports_in(ast.parse(source), package)
        if each.module.partition(".")[0] in CHECKOUT_ONLY
    ]


def eager_statements(tree: ast.Module) -> ast.Module:
    """The module without what runs later or never: functions, and imports for type checkers."""
    kept: list[ast.stmt] = []
    for node in tree.body:
        for_checkers = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not for_checkers and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kept.append(node)
    return ast.Module(kept, [])


def public_names(file: Path) -> set[str]:
    """The names in a package's `__all__`, read without importing it."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                return set(ast.literal_eval(node.value))
    return set()


def package_modules() -> list[Path]:
    """All modules of the package, those behind the links by their real place."""
    links = (ROOT / "aioflow" / "operators", ROOT / "aioflow" / "plans")
    found = [
        path
        for path in (ROOT / "aioflow").rglob("*.py")
        if not any(path.is_relative_to(link) for link in links)
    ]
    return sorted(found + list((ROOT / "operators").rglob("*.py")))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_engine_modules_import_only_from_their_left() -> None:
    folder = ROOT / "aioflow"
    packages = [path for name in ENGINE_PACKAGES for path in sorted((folder / name).glob("*.py"))]
    paths = [*sorted(folder.glob("*.py")), *packages]
    modules = {".".join(path.relative_to(folder).with_suffix("").parts): path for path in paths}
    found = [
        line
        for module, path in modules.items()
        if path.stem not in DOORS
        for line in engine_violations(module, path.read_text())
    ]
    assert not found, "\n".join(found)


def test_the_public_names_load_no_service() -> None:
    tree = ast.parse((ROOT / "aioflow" / "__init__.py").read_text())
    eager = {
        each.module
        for each in imports_in(eager_statements(tree), "aioflow")
        if each.module.startswith("aioflow")
    }
    assert eager <= {f"aioflow.{module}" for module in ENGINE_ORDER}


def test_operators_import_only_public_names() -> None:
    public = {
        name: public_names(ROOT / name.replace(".", "/") / "__init__.py") for name in OPERATORS_MAY_IMPORT
    }
    files = sorted((ROOT / "operators").rglob("*.py"))
    found = [line for path in files for line in operator_violations(relative(path), path.read_text(), public)]
    assert not found, "\n".join(found)


def test_nothing_shipped_imports_by_the_name_of_a_folder_of_the_checkout() -> None:
    found = []
    for path in package_modules():
        package = ".".join(path.relative_to(ROOT).parts[:-1])
        found += checkout_violations(relative(path), package, path.read_text())
    assert not found, "\n".join(found)


def test_no_module_is_longer_than_600_lines() -> None:
    files = package_modules() + sorted((ROOT / "benchmarks").glob("*.py"))
    lengths = {relative(path): len(path.read_text().splitlines()) for path in files}
    assert {file: length for file, length in lengths.items() if length > LINES_AT_MOST} == {}


LEFT_TO_RIGHT = ("errors", "stream", "plan")


@pytest.mark.parametrize(
    "source",
    [
        "from aioflow.plan import Plan",
        "import aioflow.plan",
        "from aioflow import plan",
        "from aioflow import Plan",
        "from . import plan",
        "from .plan import Plan",
        "import aioflow",
        "from aioflow.language import parse",
        "from aioflow.errors.deeper import it",
        "if TYPE_CHECKING:\n    from aioflow.plan import Plan",
        "def lazily():\n    from aioflow.plan import Plan",
    ],
)
def test_an_import_from_the_right_is_found(source: str) -> None:
    assert len(engine_violations("stream", source, LEFT_TO_RIGHT)) == 1


@pytest.mark.parametrize(
    "source",
    ["from aioflow.errors import AioflowError", "from .errors import E", "import json", "import errors"],
)
def test_an_import_from_the_left_is_allowed(source: str) -> None:
    assert engine_violations("stream", source, LEFT_TO_RIGHT) == []


def test_an_engine_module_without_a_place_is_found() -> None:
    assert engine_violations("helpers", "", LEFT_TO_RIGHT) == ["aioflow.helpers has no place in ENGINE_ORDER"]


PUBLIC = {"aioflow": {"Stream"}, "aioflow.expressions": {"compile_condition"}}


@pytest.mark.parametrize(
    "source",
    [
        "from aioflow.session import Session",
        "from aioflow import _private",
        "from ..session import Session",
        "from aioflow.expressions import _private",
        "from aioflow.expressions.parser import parse",
        "import aioflow.session",
    ],
)
def test_an_operator_that_imports_the_inside_is_found(source: str) -> None:
    assert len(operator_violations("operators/it.py", source, PUBLIC)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from aioflow import Stream",
        "import aioflow",
        "from aioflow.expressions import compile_condition",
        "from aioflow.operators.relational import select",
        "from aioflow.operators import relational",
        "from . import relational",
        "import json",
    ],
)
def test_an_operator_may_import_public_names(source: str) -> None:
    assert operator_violations("operators/it.py", source, PUBLIC) == []


@pytest.mark.parametrize(
    "source", ["import operators", "from operators.relational import select", "import tests.tools"]
)
def test_an_import_by_a_folder_of_the_checkout_is_found(source: str) -> None:
    assert len(checkout_violations("operators/it.py", "aioflow.operators", source)) == 1
