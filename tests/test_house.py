"""The house stays in order: imports go downhill, nothing heavy is loaded at start-up, no copies of the paper."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gbfl_compile"

# What each room may import of ours. A room that is not listed may not exist.
FOUNDATION = {"errors", "version", "files", "resources", "unfinished", "archives"}
LANGUAGE = FOUNDATION | {"ir"}
MEASURES = LANGUAGE | {"triplets", "consistency"}
TARGETS = LANGUAGE | {"backends", "artifacts"}
ROOMS = {
    "errors": set(),
    "version": set(),
    "unfinished": set(),
    "interrupts": {"unfinished"},
    "files": {"errors", "unfinished"},
    "folders": {"errors", "files", "unfinished"},
    "archives": {"errors", "files"},
    "resources": {"errors"},
    "ir": FOUNDATION,
    "triplets": FOUNDATION,
    "consistency": FOUNDATION | {"triplets"},
    "reasons": LANGUAGE,
    "passes": LANGUAGE | {"reasons"},
    "databases": LANGUAGE,
    "backends": LANGUAGE | {"databases", "reasons"},
    "learn": MEASURES,
    "artifacts": TARGETS | {"folders", "databases"},
    "csv_rows": {"errors"},
    "csv_hints": set(),
    "tables": FOUNDATION | {"ir", "csv_rows", "csv_hints"},
    "ordered_work": set(),
    "table_batches": FOUNDATION | {"tables", "csv_rows", "csv_hints"},
    "table_writers": FOUNDATION | {"ir", "tables", "table_batches"},
    "scoring": TARGETS | {"tables", "table_batches", "table_writers", "ordered_work"},
    "scoring_database": TARGETS | {"databases"},
    "spark": TARGETS | {"databases"},
    "provenance": FOUNDATION,
    "raw_trees": LANGUAGE,
    "lowering": MEASURES | {"learn", "provenance", "raw_trees"},
    "datasets": FOUNDATION,
    "paper": MEASURES | {"learn", "lowering", "passes", "datasets", "provenance"},
    "skl2onnx_converter": TARGETS | {"learn", "lowering", "passes"},
    "check": MEASURES | TARGETS | {"reasons"},
    "doctor": TARGETS,
    "demo": MEASURES | TARGETS | {"learn", "lowering", "passes", "check"},
    "line_breaks": set(),
    "screen": MEASURES | {"check", "demo", "paper", "line_breaks"},
    "black_boxes": LANGUAGE | {"learn", "onnx_black_box"},
    "onnx_black_box": LANGUAGE,
    "database_tables": LANGUAGE | {"databases"},
    "mining": MEASURES | {"learn", "lowering", "passes", "provenance", "tables", "table_batches", "black_boxes"},
    "starter": FOUNDATION,
    "why": LANGUAGE | {"reasons"},
    "audit": MEASURES | TARGETS | {"check", "databases", "reasons", "tables", "table_batches"},
    "report": TARGETS | {"triplets", "reasons", "why"},
    "commands": None,
    "cli": None,
    "__init__": None,
}

HEAVY = {
    "numpy",
    "scipy",
    "sklearn",
    "pandas",
    "pyarrow",
    "onnx",
    "onnxruntime",
    "skl2onnx",
    "sqlglot",
    "duckdb",
    "jinja2",
}


def files():
    return sorted(PACKAGE.rglob("*.py"))


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """(module, at the top level) for each import; those only for type checkers do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in tree.body) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name"
            yield node.module, node in tree.body
            if node.module == "gbfl_compile":
                yield from ((f"gbfl_compile.{alias.name}", node in tree.body) for alias in node.names)


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downhill(path):
    assert room(path) in ROOMS, f"{room(path)} is a new room: say in ROOMS what it may import"
    allowed = ROOMS[room(path)]
    if allowed is None:
        return
    for module, _ in imported(path):
        if module.startswith("gbfl_compile."):
            there = module.split(".")[1]
            assert there == room(path) or there in allowed, f"{path.name} imports {module}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "backends").glob("*.py")), ids=lambda path: path.name)
def test_backends_do_not_import_each_other(path):
    shared = {"gbfl_compile.backends.base", "gbfl_compile.backends.templates"}
    if path.name == "__init__.py":
        return
    own = f"gbfl_compile.backends.{path.stem.split('_')[0]}_"  # onnx.py and onnx_tree.py are one target
    for module, _ in imported(path):
        allowed = not module.startswith("gbfl_compile.backends") or module in shared or module.startswith(own)
        assert allowed, f"{path.name} imports {module}"


@pytest.mark.parametrize(
    "room_name",
    [
        "cli",
        "__init__",
        "errors",
        "version",
        "files",
        "resources",
        "databases",
        "backends",
        "screen",
        "doctor",
        "commands",
    ],
)
def test_nothing_heavy_is_imported_at_the_top(room_name):
    for path in files():
        if room(path) == room_name:
            at_top = {module.split(".")[0] for module, top in imported(path) if top}
            assert not at_top & HEAVY, f"{path.name} imports {at_top & HEAVY} at start-up"


def loaded_after(code):
    script = f"import sys; {code}; print(' '.join(sorted(m.split('.')[0] for m in sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_starting_the_command_line_loads_nothing_heavy():
    assert not loaded_after("import gbfl_compile.cli") & (HEAVY | {"rich"})


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import gbfl_compile") & (HEAVY | {"rich", "click"})


def test_doctor_loads_nothing_heavy():
    assert not loaded_after("import gbfl_compile.doctor as d; d.examine()") & HEAVY


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_opens_with_its_promise(path):
    promise = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert promise
    assert path.stem not in ("utils", "helpers", "common", "misc")
