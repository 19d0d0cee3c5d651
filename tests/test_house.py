"""The house stays in order: imports go downhill, start-up is light, names and sizes are as CONTRIBUTING.md says."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "gbfl_compile"

# What each room may import from this package; the longest matching prefix applies, also to everything below it. A room
# that is not listed may not exist. None: anything.
FOUNDATION = {"errors", "version", "files"}
LANGUAGE = FOUNDATION | {"ir"}
TRIPLETS = {"learning.consistency"}
ROOMS: dict[str, set[str] | None] = {
    "errors": set(),
    "version": set(),
    "files": FOUNDATION,
    "ir": FOUNDATION,
    "databases": LANGUAGE,
    "tables": LANGUAGE | {"databases"},
    "learning": LANGUAGE | {"tables.conversion", "tables.frames", "tables.kinds", "tables.values"},
    "lowering": LANGUAGE | {"learning"},
    "passes": LANGUAGE,
    "mining": LANGUAGE | {"tables", "databases", "learning", "lowering", "passes"},
    "backends": LANGUAGE | {"databases", "tables"},
    "backends.onnx.skl2onnx": LANGUAGE | {"backends.onnx", "learning", "lowering", "passes"},
    "checking": LANGUAGE | TRIPLETS | {"backends", "tables"},
    "checking.reading": LANGUAGE,
    "checking.strict": LANGUAGE | {"checking.reading"},
    "checking.general": LANGUAGE | {"checking.reading", "checking.strict"},
    "auditing": LANGUAGE | TRIPLETS | {"backends", "checking", "databases", "tables"},
    "why": LANGUAGE | TRIPLETS | {"tables"},
    "reporting": LANGUAGE | TRIPLETS | {"backends", "checking", "tables", "why"},
    "paper": LANGUAGE | {"learning", "lowering", "passes"},
    "cli": None,
    "__init__": None,
    "__main__": None,
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


@cache
def syntax(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def dotted(path):
    """`checking.strict.sql.lexer`; a package is its folder."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def within(name, prefix):
    return name == prefix or name.startswith(f"{prefix}.")


def room(name):
    """The row of ROOMS that rules a module."""
    return max((prefix for prefix in ROOMS if within(name, prefix)), key=len, default=None)


def uphill(name, modules):
    """Those of the imported modules that a module of this name may not import."""
    home = room(name)
    assert home is not None, f"{name} is in a new room: say in ROOMS what it may import"
    allowed = ROOMS[home]
    if allowed is None:
        return []
    ours = [module.removeprefix("gbfl_compile.") for module in modules if module.startswith("gbfl_compile.")]
    return [module for module in ours if not any(within(module, prefix) for prefix in (home, *allowed))]


def imported(path):
    """(module, at the top level) for each import; those only for type checkers do not count."""
    tree = syntax(path)
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


@pytest.mark.parametrize("path", files(), ids=dotted)
def test_imports_go_downhill(path):
    assert uphill(dotted(path), [module for module, _ in imported(path)]) == []


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("checking.strict.sql.lexer", "backends.sql.engines"),
        ("checking.reading.nodes", "checking.run"),
        ("ir.text", "learning.classifier"),
        ("learning.explain.greedy", "checking.witnesses"),
        ("backends.sql.decisions", "learning.fit"),
        ("databases.duckdb", "backends"),
    ],
)
def test_a_planted_import_uphill_is_found_however_deep_it_is(name, module, tmp_path):
    planted = tmp_path / "planted.py"
    planted.write_text(f"def late():\n    from gbfl_compile.{module} import something\n")
    assert uphill(name, [imported for imported, _ in imported(planted)]) == [module]


def test_a_room_that_is_not_listed_is_found():
    with pytest.raises(AssertionError, match="new room"):
        uphill("utils.helpers", [])


def other_targets(name, modules):
    """Modules of other targets that a backend imports."""
    shared = {f"backends.{each}" for each in ("base",)}
    own = ".".join(name.split(".")[:2])
    ours = [module.removeprefix("gbfl_compile.") for module in modules if module.startswith("gbfl_compile.backends")]
    return [module for module in ours if module not in shared and not within(module, own)]


@pytest.mark.parametrize("path", sorted((PACKAGE / "backends").rglob("*.py")), ids=dotted)
def test_backends_do_not_import_each_other(path):
    if dotted(path) not in WHOLE_OF_BACKENDS:
        assert other_targets(dotted(path), [module for module, _ in imported(path)]) == []


# These serve every target: the registry, artifacts on disk, scoring a table, and what asks the registry by its name.
WHOLE_OF_BACKENDS = {"backends", "backends.score", "backends.sql.score"}


def test_a_planted_import_of_another_target_is_found():
    planted = ["gbfl_compile.backends.sql.text", "gbfl_compile.backends.c.expressions", "gbfl_compile.backends.base"]
    assert other_targets("backends.c.kernels", planted) == ["backends.sql.text"]


def test_the_root_holds_no_loose_modules():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "errors.py", "version.py"}


@pytest.mark.parametrize(
    "room_name",
    [
        "cli",
        "__init__",
        "errors",
        "version",
        "files",
        "databases",
        "backends",
    ],
)
def test_nothing_heavy_is_imported_at_the_top(room_name):
    for path in files():
        if within(dotted(path), room_name) and dotted(path) not in LOADED_LATE:
            at_top = {module.split(".")[0] for module, top in imported(path) if top}
            assert not at_top & HEAVY, f"{path.name} imports {at_top & HEAVY} at start-up"


LOADED_LATE = {"backends.onnx.skl2onnx"}
"""Modules of these rooms that are imported only where they are used."""


def loaded_after(code):
    script = f"import sys; {code}; print(' '.join(sorted(m.split('.')[0] for m in sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_starting_the_command_line_loads_nothing_heavy():
    assert not loaded_after("import gbfl_compile.cli.entry") & (HEAVY | {"rich"})


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import gbfl_compile") & (HEAVY | {"rich", "click"})


def test_doctor_loads_nothing_heavy():
    assert not loaded_after("import gbfl_compile.cli.start as d; d.examine()") & HEAVY


@pytest.mark.parametrize("path", files(), ids=dotted)
def test_a_module_opens_with_its_promise(path):
    promise = ast.get_docstring(syntax(path))
    assert promise
    assert path.stem not in ("utils", "helpers", "common", "misc")


ERRORS_TAKEN_APART = ("startswith", "endswith", "find", "index", "count", "search", "match", "fullmatch", "findall")


def decisions_by_error_text(tree):
    """Lines that decide something by the words of an error: a reworded message would change what the program does."""
    lines = []
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        texts = {handler.name}
        for node in ast.walk(handler):
            if isinstance(node, ast.Assign) and is_error_text(node.value, texts):
                texts |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        for node in ast.walk(handler):
            match node:
                case ast.Compare(left=left, comparators=others):
                    parts = [left, *others]
                case ast.Call(func=ast.Attribute(value=value, attr=name), args=args) if name in ERRORS_TAKEN_APART:
                    parts = [value, *args]
                case _:
                    continue
            if any(is_error_text(part, texts) for part in parts):
                lines.append(node.lineno)
    return lines


def is_error_text(node, texts):
    """`str(error)`, `repr(error)`, `error.args`, `error.args[0]`, an f-string of it, or a name that holds one of these."""
    match node:
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
            return name in texts
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
            return name in texts
        case ast.Attribute(value=ast.Name(id=name), attr="args"):
            return name in texts
        case ast.Call(func=ast.Attribute(value=value, attr="lower" | "casefold" | "strip")):
            return is_error_text(value, texts)
        case ast.JoinedStr(values=values):
            inner = [each.value for each in values if isinstance(each, ast.FormattedValue)]
            return any(isinstance(each, ast.Name) and each.id in texts for each in inner)
        case ast.Name(id=name):
            return name in texts
        case _:
            return False


def in_every_file(look, untidy=frozenset()):
    """What `look` sees in the syntax of each file, by module; rooms still to be tidied are left out."""
    seen = {dotted(path): look(syntax(path)) for path in files() if dotted(path).split(".")[0] not in untidy}
    return {module: names for module, names in seen.items() if names}


def test_nothing_is_decided_by_the_words_of_an_error():
    assert in_every_file(decisions_by_error_text) == {}


@pytest.mark.parametrize(
    "decision",
    [
        "if 'has no column' in str(error): pass",
        "if str(error) == 'lost': pass",
        "if error.args[0] != 'lost': pass",
        "if 'lost' in error.args: pass",
        "if str(error).startswith('no such'): pass",
        "if re.search('no such', str(error)): pass",
        "text = str(error).lower()\n    if 'lost' in text: pass",
        "if 'lost' in f'{error}': pass",
    ],
)
def test_a_planted_decision_by_error_text_is_found(decision):
    assert decisions_by_error_text(ast.parse(f"try: work()\nexcept ValueError as error:\n    {decision}\n"))


def test_an_error_may_be_printed_and_asked_for_its_fields():
    allowed = "if error.column == label: print(str(error))\n    raise BadInput(f'{path}: {error}') from None"
    assert decisions_by_error_text(ast.parse(f"try: work()\nexcept NoColumn as error:\n    {allowed}\n")) == []


# A name is a noun (a thing), a verb (an action) or a question. A bare past participle is none of these.
IRREGULAR = """told asked given found made said kept held written drawn known taken heard shown begun built bought chosen
sent left seen meant gone grown broken spoken sought thought bound won worn lost spent stood stuck beaten hidden"""
NOT_PARTICIPLES = "need seed feed speed exceed indeed bed led red shed embed proceed succeed hundred"
PARTICIPLES_ALLOWED = {"Unsigned": "what C calls its integers without a sign"}
"""Name -> why a participle is the right word there."""

VAGUE_VARIABLES = {"told", "asked", "given", "said", "heard"}
"""Each had a dozen meanings: name the thing (message, header, options, rows, verdict)."""


def is_participle(name):
    """Whether a name is one past participle and nothing else: `compared`, `_asked`, `Given`; not `rows_kept`."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", name.strip("_")).lower().split("_")
    return len(words) == 1 and (
        words[0] in IRREGULAR.split() or (words[0].endswith("ed") and words[0] not in NOT_PARTICIPLES.split())
    )


def participles(tree):
    """Functions, methods and classes named by a bare past participle."""
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, named) and is_participle(node.name)}


def vague_variables(tree):
    """Variables and parameters that say nothing about what they hold."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {name for name in names if name.strip("_") in VAGUE_VARIABLES}


def test_functions_and_classes_are_named_by_nouns_verbs_or_questions():
    left = {module: names - set(PARTICIPLES_ALLOWED) for module, names in in_every_file(participles).items()}
    assert {module: names for module, names in left.items() if names} == {}


def test_no_variable_has_a_name_that_means_a_dozen_things():
    assert in_every_file(vague_variables) == {}


def test_tests_name_what_their_variables_hold_too():
    tests = {str(path.relative_to(TESTS)): syntax(path) for path in TESTS.rglob("*.py")}
    assert {name: vague for name, tree in tests.items() if (vague := vague_variables(tree))} == {}


def test_planted_participles_are_found():
    tree = ast.parse("class Given:\n    def _asked(self): ...\ndef compared(told): ...\ndef rows_kept(seed): ...")
    assert participles(tree) == {"Given", "_asked", "compared"}
    assert vague_variables(tree) == {"told"}


LONGEST_FILE, LONGEST_FUNCTION = 400, 60
LONG_SIGNATURES = {
    "auditing.audit.audit": "the verb takes every option by name, and documents each",
    "mining.mine": "the verb takes every option by name, and documents each",
    "learning.classifier.__init__": "scikit-learn wants every parameter in the signature, and stored as it is",
}
"""Functions that may be longer -> why."""


def long_functions(tree):
    """Functions longer than the limit, decorators not counted."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name for node in functions if node.end_lineno - node.lineno >= LONGEST_FUNCTION}


def test_files_are_short():
    lengths = {dotted(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files()}
    assert {module: length for module, length in lengths.items() if length > LONGEST_FILE} == {}


def test_files_of_tests_are_short_too():
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in TESTS.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_functions_are_short_and_every_exception_is_needed():
    names = {f"{module}.{name}" for module, long in in_every_file(long_functions).items() for name in long}
    assert names == set(LONG_SIGNATURES)


def test_a_planted_long_function_is_found():
    assert long_functions(ast.parse("def long():\n" + "    x = 1\n" * 59)) == set()
    assert long_functions(ast.parse("def long():\n" + "    x = 1\n" * 60)) == {"long"}
