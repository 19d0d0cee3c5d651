"""The types of an emitted JavaScript module, compiled by TypeScript: right uses pass, wrong ones are errors."""

import shutil
import subprocess
from dataclasses import replace

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.ir.text import with_reasons
from tests.backends.test_js import EVERY_KIND
from tests.checking.strict.js.test_edits import TREE

OPTIONS = ("--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--exactOptionalPropertyTypes")

RIGHT = """
import { CLASSES, CLAUSES, DIGEST, FEATURES, REASONS, score, scoreColumns, type Answer, type Label, type Row } from "./model.js";
const row: Row = { age: 30, city: "Bonn", smoker: true, opened: "2024-02-29", seen: new Date(0) };
const gaps: Row = { age: null, city: undefined, smoker: null, opened: null, seen: undefined };
const answer: Answer = score(row);
const label: "no" | "yes" = answer.label;
const texts: string[] = answer.held.map((clause) => CLAUSES[clause]!);
const most: number = Math.max(...answer.probabilities, answer.index, ...answer.scores);
const all: Answer[] = scoreColumns({
  age: Float64Array.of(30, NaN), city: ["Bonn", null], smoker: [true, undefined], opened: ["2024-02-29", null], seen: ["1970-01-01T00:00", new Date(0)],
});
const known: readonly Label[] = CLASSES;
const kinds: string[] = FEATURES.map(({ name, kind }) => name + kind + DIGEST + (REASONS[0] ?? ""));
export { gaps, label, texts, most, all, known, kinds };
"""

WRONG = (
    'score({ age: "30", city: "Bonn", smoker: true, opened: null, seen: null });',
    "score({ age: 30, city: 1, smoker: true, opened: null, seen: null });",
    'score({ age: 30, city: "Bonn", smoker: 1, opened: null, seen: null });',
    'score({ age: 30, city: "Bonn", smoker: true, opened: new Date(), seen: null });',
    'score({ city: "Bonn", smoker: true, opened: null, seen: null });',
    'score({ age: 30n, city: "Bonn", smoker: true, opened: null, seen: null });',
    'const other: "maybe" = score(row).label;',
    "score(row).probabilities[0] = 1;",
    "score(row).leaf.toFixed();",
    'scoreColumns({ age: ["30"], city: ["Bonn"], smoker: [true], opened: [null], seen: [null] });',
    "CLASSES.push('yes');",
    "FEATURES[0]!.name = 'x';",
)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    """TypeScript's compiler: the one that is installed, or one from npm."""
    if (command := shutil.which("tsc")) is not None:
        return command
    if shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("typescript")
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "typescript@5"]
    if subprocess.run(install, cwd=folder, capture_output=True).returncode != 0:
        pytest.skip("typescript cannot be installed here")
    return str(folder / "node_modules" / ".bin" / "tsc")


def compiled(compiler, program, text, folder):
    for name, content in emit(program, "js").files.items():
        (folder / name).write_bytes(content)
    (folder / "use.ts").write_text(text)
    run = subprocess.run([compiler, *OPTIONS, "use.ts"], cwd=folder, capture_output=True, text=True, timeout=300)
    return run.returncode, run.stdout


def test_right_uses_compile(compiler, tmp_path):
    program = with_reasons(EVERY_KIND, {0: "Too young"})
    assert compiled(compiler, program, RIGHT, tmp_path) == (0, "")


def test_every_wrong_use_is_an_error(compiler, tmp_path):
    """TypeScript calls a line that is expected to be an error, and is none, an error itself."""
    marked = "".join(f"// @ts-expect-error\n{line}\n" for line in WRONG)
    program = with_reasons(EVERY_KIND, {0: "Too young"})
    assert compiled(compiler, program, RIGHT + marked, tmp_path) == (0, "")
    code, errors = compiled(compiler, program, RIGHT + "".join(f"{line}\n" for line in WRONG), tmp_path)
    assert (code, len({line.partition(":")[0] for line in errors.splitlines() if line[0] != " "})) == (2, len(WRONG))


@pytest.mark.parametrize(
    ("classes", "typed"), [((0, 1), "number"), ((False, True), "boolean"), (("<b>", 'a"b'), '"<b>" | "a\\"b"')]
)
def test_a_tree_has_leaves_and_its_labels_have_their_type(compiler, tmp_path, classes, typed):
    text = f"""import {{ score }} from "./model.js";
    const answer = score({{ age: 1, debt: null }});
    const label: {typed} = answer.label;
    const leaf: number = answer.leaf;
    const scores: null = answer.scores;
    export {{ label, leaf, scores }};
    """
    assert compiled(compiler, replace(TREE, classes=classes), text, tmp_path) == (0, "")
