"""The architecture as a test: who may import whom, and what no file may hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from helpers import for_each

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parent.parent
FOLDERS: Final = ("corpus", "oracles", "fuzz", "reports")
LAYERS: Final = {
    "corpus": {"corpus"},
    "oracles": {"oracles", "corpus"},
    "reports": {"reports", "corpus"},
    "fuzz.support": {"fuzz.support", "corpus"},
    "fuzz.passes": {"fuzz.passes", "oracles", "corpus"},
    "fuzz.generators": {
        *("fuzz.generators", "fuzz.support", "fuzz.passes"),
        *("oracles", "corpus"),
    },
    "fuzz.engines": {"fuzz.engines", "corpus"},
    "fuzz.executors": {
        *("fuzz.executors", "fuzz.support", "fuzz.engines", "fuzz.passes"),
        "corpus",
    },
    # From programs that people wrote to their report.
    "fuzz.programs": {"fuzz.programs", "oracles", "reports", "corpus"},
    # A mutant in Python interprets a test by the oracles' arithmetic.
    "fuzz.mutants": {
        *("fuzz.mutants", "fuzz.executors", "fuzz.support", "fuzz.engines", "fuzz.passes"),
        *("oracles", "corpus"),
    },
}
"""What each package may import. The packages of `fuzz` above these may import all below."""
ABOVE: Final = (
    "fuzz.finding",
    "fuzz.store",
    "fuzz.campaign",
    "fuzz.nightly",
    "fuzz.commands",
    "fuzz.bench",
    "fuzz.testing",
    "fuzz.cli",
    "fuzz.pytest",
)
for number, name in enumerate(ABOVE):
    LAYERS[name] = {*LAYERS, *ABOVE[: number + 1]}
MAX_BLOB_BYTES: Final = 256 << 10


def module_of(path: Path) -> str:
    """The dotted name of a source, relative to `litmusfuzz`; "" is the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[:2] == ("fuzz", "litmusfuzz"):
        parts = parts[2:]
    return ".".join(parts).removesuffix("__init__").removesuffix(".")


FINDINGS: Final = ROOT / "corpus" / "findings"
"""Standalone scripts for bug reports; no modules of the package."""
SOURCES: Final = {
    module_of(path): path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    if FINDINGS not in path.parents
}
OURS: Final = {f"litmusfuzz.{module}" for module in SOURCES}
PUBLIC: Final = ("", "__main__")
"""The package itself and its entry point: they stand above all layers."""


def layer_of(module: str) -> str | None:
    """The layer that a module belongs to; None for a package's own chapter."""
    if module in (*PUBLIC, "fuzz"):
        return None
    if module.startswith("fuzz.pytest_"):
        return "fuzz.pytest"
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "fuzz" else parts[0]


@cache
def imported(module: str) -> frozenset[str]:
    """Modules of ours that a module imports, anywhere in it, relative to `litmusfuzz`."""
    found = set()
    for name in all_imported(SOURCES[module]):
        ours = name.removeprefix("litmusfuzz.") if name.startswith("litmusfuzz.") else None
        if ours in SOURCES and ours != module:
            found.add(ours)
    return frozenset(found)


@cache
def all_imported(path: Path) -> frozenset[str]:
    """Dotted names that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= names_in(node)
    return frozenset(found)


def names_in(node: ast.ImportFrom) -> set[str]:
    """Dotted names that an import brings in."""
    assert node.module is not None
    names = {f"{node.module}.{alias.name}" for alias in node.names}
    # What imports nothing but modules of a package needs those, not the package.
    return names if names <= OURS else {node.module} | names


@cache
def tracked() -> tuple[Path, ...]:
    """Files that git tracks, or would: those of the checkout without what it ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(path for path in paths if path.is_file() and not path.is_symlink())


# --- layers ----------------------------------------------------------------------------


@for_each("module", sorted(SOURCES.keys() - {*PUBLIC, "fuzz"}))
def test_imports_point_down(module: str) -> None:
    layer = layer_of(module)
    assert layer in LAYERS, f"{module} is in no layer: add its package to LAYERS"
    used = {layer_of(name) for name in imported(module)} - {None}
    assert used <= LAYERS[layer]


def test_nothing_imports_the_public_api_from_inside() -> None:
    """The facade imports everything; inside, a name comes from the module that defines it."""
    inside = {m: all_imported(path) for m, path in SOURCES.items() if m not in PUBLIC}
    for module, names in inside.items():
        own = {n.split(".")[1] for n in names if n.startswith("litmusfuzz.")}
        assert own <= {*FOLDERS}, (module, own)


def test_no_import_circle() -> None:
    """Imports for type checking and inside functions count as well."""
    graph = {module: imported(module) - {*PUBLIC} for module in SOURCES.keys() - {*PUBLIC}}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@for_each("module", sorted(SOURCES))
def test_frameworks_are_imported_by_their_own_executor_only(module: str) -> None:
    frameworks = {name.split(".")[0] for name in all_imported(SOURCES[module])}
    frameworks &= {"tensorflow", "jax", "jaxlib"}
    of_jax = (
        *("fuzz.executors.jax_clustered.", "fuzz.executors.jax_refs."),
        "fuzz.mutants.jax_refs",  # they change what is traced
    )
    assert not frameworks - {"tensorflow"} or module.startswith(of_jax)
    of_tensorflow = ("fuzz.executors.tensorflow.", "fuzz.programs.tensorflow.")
    assert not frameworks - {"jax", "jaxlib"} or module.startswith(of_tensorflow)


def test_every_module_is_reached_from_a_command_a_test_or_an_entry_point() -> None:
    """An import or a string that names a module, as in a table of executors, reaches it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = [*project["scripts"].values(), *project["entry-points"]["pytest11"].values()]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    reached = set(PUBLIC)
    todo = [*texts, *points, *(SOURCES[m].read_text(encoding="utf-8") for m in PUBLIC)]
    named = re.compile(r"litmusfuzz\.([a-z_0-9.]+)(?: import (\([^)]*\)|[^\n]*))?")
    while todo:
        for base, names in named.findall(todo.pop()):
            parts = base.rstrip(".").split(".")
            found = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
            found |= {f"{base}.{name}" for name in re.findall(r"\w+", names)}
            new = (found & SOURCES.keys()) - reached
            reached |= new
            todo += [SOURCES[m].read_text(encoding="utf-8") for m in new]
    assert not SOURCES.keys() - reached


@pytest.mark.parametrize(
    "arguments", [["oracle"], ["show"], ["validate"], ["herd", "log"], ["herd", "export"]]
)
def test_commands_that_run_nothing_load_nothing_heavy(arguments: list[str]) -> None:
    """No framework, no NumPy, no rich: what keeps `oracle` and `show` quick."""
    code = (
        "import sys; from litmusfuzz.fuzz.cli.main import main\n"
        f"sys.argv = ['litmusfuzz', *{arguments!r}, {str(ROOT / 'corpus/litmus/SB.yaml')!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'tensorflow', 'jax', 'numpy', 'rich', 'hypothesis', 'psutil', 'z3'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# --- sizes -----------------------------------------------------------------------------

SIZED: Final = ("fuzz.finding", "fuzz.store", "fuzz.campaign", "fuzz.nightly", "fuzz.commands")
MAX_LINES: Final = 400
MAX_CLASS_LINES: Final = 250
MAX_IMPORTS: Final = 10
"""Of modules of `fuzz`, which need not be there for types alone."""
LONGER: Final[dict[str, tuple[int, str]]] = {}
"""Modules with more lines, each with as many as it may have, and why. The list only shrinks."""
LONGER_CLASSES: Final = {
    "fuzz.nightly.coordinator.Coordinator": (325, "signals, progress, reports: one life of a run"),
}
MORE_IMPORTS: Final = {
    "fuzz.campaign.parts": (19, "puts a campaign together: it is to know all parts"),
    "fuzz.commands.minimize_crash": (13, "joins the reduction of crashes to a command"),
}
MAX_TUNED: Final = 24
"""Tuned numbers of seconds and shares in a campaign."""


def sized() -> Iterator[tuple[str, ast.Module]]:
    """The modules that have to be small, parsed."""
    for module, path in SOURCES.items():
        if layer_of(module) in SIZED:
            yield module, ast.parse(path.read_text(encoding="utf-8"))


def assert_small(sizes: dict[str, int], limit: int, larger: dict[str, tuple[int, str]]) -> None:
    """No size is over the limit, nor over that of its exception, which is still needed."""
    over = {name: size for name, size in sizes.items() if size > limit}
    assert over.keys() == larger.keys()
    assert not {name: size for name, size in over.items() if size > larger[name][0]}
    assert all(reason for _, reason in larger.values())


def lines_of(node: ast.ClassDef) -> int:
    """Lines of a class."""
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_a_module_reads_in_one_sitting() -> None:
    paths = {module: SOURCES[module] for module, _ in sized()}
    lines = {m: len(path.read_text(encoding="utf-8").splitlines()) for m, path in paths.items()}
    assert_small(lines, MAX_LINES, LONGER)


def test_a_class_reads_in_one_sitting() -> None:
    classes = {
        f"{module}.{node.name}": lines_of(node)
        for module, tree in sized()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    assert_small(classes, MAX_CLASS_LINES, LONGER_CLASSES)


def test_a_module_needs_few_others() -> None:
    needed = {}
    for module, tree in sized():
        for_types = {
            below
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for below in ast.walk(node)
        }
        names = {
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node not in for_types
            for name in names_in(node)
        }
        needed[module] = sum(name.startswith("litmusfuzz.fuzz.") for name in names & OURS)
    assert_small(needed, MAX_IMPORTS, MORE_IMPORTS)


def test_tuned_seconds_and_shares_stand_in_one_module() -> None:
    """Their names end in ``_S``, ``SLICE`` or ``SHARE``. One that is computed of others is none."""
    tuned = {
        (module, ast.unparse(node.target))
        for module, tree in sized()
        if layer_of(module) == "fuzz.campaign"
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and node.value
        and re.search(r"(_S|SLICE|SHARE)$", ast.unparse(node.target))
        and not re.search(r"[A-Za-z]", ast.unparse(node.value))
    }
    assert {module for module, _ in tuned} == {"fuzz.campaign.tuning"}
    assert len(tuned) <= MAX_TUNED


# --- files -----------------------------------------------------------------------------


def test_every_source_has_a_docstring_and_no_stars() -> None:
    for path in SOURCES.values():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert all(alias.name != "*" for alias in node.names), path


def test_no_test_imports_a_private_name_of_the_product() -> None:
    private = re.compile(r"litmusfuzz\..*\._[a-z]")
    compiled = re.compile(r"\._(executor|explorer|mutants)$")
    for path in (ROOT / "tests").rglob("*.py"):
        names = [n for n in all_imported(path) if private.search(n) and not compiled.search(n)]
        assert not names, (path, names)


def test_no_test_returns_early() -> None:
    """An item that returns may return before it asserts; it is parametrized instead."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        todo: list[ast.AST] = [
            each
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            for each in node.body
        ]
        while todo:
            node = todo.pop()
            assert not isinstance(node, ast.Return), f"{path}:{node.lineno}"
            nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
            if not isinstance(node, nested):
                todo += ast.iter_child_nodes(node)


def test_no_large_blob() -> None:
    large = [path for path in tracked() if path.stat().st_size > MAX_BLOB_BYTES]
    assert not large


def test_the_lock_pins_every_requirement_by_hash_and_names_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    requirements = [line for line in text.splitlines() if line[:1].strip() not in ("", "#")]
    assert requirements
    for line in requirements:
        assert re.match(r"[a-z0-9.-]+==[^ ]+ .*\\$", line), line  # a line of hashes follows
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += project["project"]["optional-dependencies"]["dev"]
    locked = {line.partition("==")[0] for line in requirements}
    names = {re.split(r"[^A-Za-z0-9_.-]", each)[0].lower().replace("_", "-") for each in wanted}
    assert names - {"litmusfuzz"} <= locked


def test_the_editable_package_consists_of_links() -> None:
    """A copy in `.ci/package` (an editor's doing) would hide later changes."""
    entries = list((ROOT / ".ci" / "package" / "litmusfuzz").iterdir())
    copies = [each.name for each in entries if each.name != "__pycache__" and not each.is_symlink()]
    assert entries
    assert not copies


BANNED: Final = frozenset(
    [
        "night",
        "nights",
        "spool",
        "spools",
        "spooled",
        "rota",
        "rotas",
        "dealer",
        "dealing",
        "dealt",
        "teller",
        "told",
        "whatsup",
        "redraw",
        "redraws",
        "redrawn",
        "scene",
        "scenes",
        "bait",
        "baits",
        "sketch",
        "sketches",
        "twin",
        "twins",
        "stock",
        "stocked",
        "promise",
        "promises",
        "promised",
        "profile",
        "profiles",
        "room",
        "rooms",
        "floor",
        "floors",
        "house",
        "drawn",
        "drew",
        "draft",
        "drafts",
        "journal",
        "journals",
        "strategy",
        "strategies",
    ]
)
"""Words of a former private vocabulary; docs/decisions/0014-names.md has what replaced them."""
ALLOWED: Final = re.compile(
    r"[Hh]ypothesis|st\.|strategies as|journal_mode|rollback journal|-journal"
    r"|tf-nightly|promise_in_bounds|math\.floor|\"Floor\"|Floor(Div|Mod)"
    # Seeds of the family `mutations` depend on the names of corpus tests.
    r"|std::promise|backpressure-with-room"
)
"""Lines where such a word is a library's name for something."""


def test_standard_terms() -> None:
    suffixes = (".py", ".pyi", ".md", ".cpp", ".h", ".cu", ".html", ".toml", ".yml")
    exempt = {ROOT / "docs/decisions/0014-names.md", ROOT / "tests/docs/test_glossary.py"}
    exempt.add(ROOT / "docs/ops.md")  # names of TensorFlow's registry
    exempt.update((ROOT / "tests/programs/real").glob("*.py"))  # as people wrote them
    word = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
    found = []
    for path in tracked():
        if path.suffix not in suffixes or path in {*exempt, Path(__file__).resolve()}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = {each.lower() for each in word.findall(line)} & BANNED
            if words and not ALLOWED.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {', '.join(sorted(words))}")
    assert not found, "\n".join(found)
