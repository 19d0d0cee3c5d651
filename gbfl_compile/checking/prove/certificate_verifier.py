"""Checks a certificate: python certificate_verifier.py program.json certificate.json [ARTIFACT], a file or its folder.

Standard library only and no code of the prover, so that it can be read in five minutes and trusted for that.
Walks the list of splits and boxes; every box must send all of its rows to one leaf of the program and one step of the
artifact, and the two must agree in all that the certificate claims. Splits leave nothing out, so the boxes cover all.
The digest of the program is computed from its rules, and the bytes of the artifact are compared with the certificate's.
"""

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

Form = dict[str, Any]
Box = dict[int, tuple[float, float, bool]]


LARGEST = 256 * 2**20  # bytes of a file
MOST_ASKED = 2_000  # features of one box: each split copies its box
FORM = 2  # of the certificate
DIGEST_FORM = 1  # of what a program's digest covers
ENTRIES = ({"cut", "at"}, {"missing"}, {"leaf", "step"})


def parse(content: bytes) -> Any:
    """Return the JSON of a file that may come from anyone."""
    if len(content) > LARGEST:
        raise ValueError(f"more than {LARGEST} bytes")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def verify(program: Form, certificate: Form, artifact: Path | None = None) -> int:
    """Return how many boxes were checked; a ValueError says what is wrong."""
    try:
        if certificate["form"] != FORM:
            raise ValueError(f"a certificate of form {certificate['form']}, this verifies form {FORM}")
        if artifact is not None:
            _check_files(certificate["artifact"], artifact)
        return _check_boxes(program, certificate)
    except ValueError:
        raise
    except Exception as error:  # a key that is missing, a list where a number belongs
        raise ValueError(f"it is not a certificate of a program: {type(error).__name__}") from None


def _check_files(covered: dict[str, str], artifact: Path) -> None:
    """Check that the artifact is exactly the files whose SHA-256 the certificate carries."""
    files = [artifact] if artifact.is_file() else [path for path in artifact.rglob("*") if not path.is_dir()]
    names = {path.name if artifact.is_file() else path.relative_to(artifact).as_posix(): path for path in files}
    if names.keys() != covered.keys():
        raise ValueError(f"the certificate covers {sorted(covered)}, the artifact has {sorted(names)}")
    for name, path in names.items():
        if hashlib.sha256(path.read_bytes()).hexdigest() != covered[name]:
            raise ValueError(f"{name}: its bytes are not those that the certificate covers")


def _digest(program: Form) -> str:
    """Compute what the program is called: the SHA-256 of its features, classes, clauses and nodes."""
    form = {
        "form": DIGEST_FORM,
        "features": program["features"],
        "classes": [[type(label).__name__, label] for label in program["classes"]],
        "clauses": [sorted(_meaning(atom) for atom in clause) for clause in program["clauses"]],
        "decision": [
            [node["clause"], node["then"], node["otherwise"]]
            if "clause" in node
            else [
                *([{"answer": node["answer"]}] if "answer" in node else []),
                *(float.fromhex(p["hex"]).hex() for p in node["probabilities"]),
            ]
            for node in program["decision"]["nodes"]
        ],
    }
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _meaning(atom: Form) -> list[Any]:
    lo = hi = None
    if "lo" in atom:
        lo = [">=" if atom["closed"] in ("left", "both") else ">", float.fromhex(atom["lo"]["hex"]).hex()]
    if "hi" in atom:
        hi = ["<=" if atom["closed"] in ("right", "both") else "<", float.fromhex(atom["hi"]["hex"]).hex()]
    return [atom["feature"], lo, hi, atom["if_missing"]]


def _check_boxes(program: Form, certificate: Form) -> int:
    if _digest(program) != program["digest"]:
        raise ValueError("the digest in the program file is not the digest of its rules")
    if certificate["program"] != program["digest"] or "winner" not in certificate["claims"]:
        raise ValueError("the certificate is about another program, or claims nothing")
    source, target, boxes = _program_steps(program), certificate["reading"], 0
    waiting: list[Box] = [{}]  # feature -> (least, most, may be missing)
    for entry in certificate["boxes"]:
        box = waiting.pop() if waiting else None
        if box is None or len(box) > MOST_ASKED or set(entry) not in ENTRIES:
            raise ValueError("there are boxes too many, one of too many features, or an entry that is none")
        least, most, missing = box.get(entry.get("cut", entry.get("missing")), (-math.inf, math.inf, True))
        if "missing" in entry:
            waiting += [box | {entry["missing"]: (least, most, False)}, box | {entry["missing"]: (1.0, 0.0, True)}]
        elif "cut" in entry:
            at = float.fromhex(entry["at"])
            if missing or not least < at <= most:
                raise ValueError(f"a split at {at} of values from {least} to {most} (missing: {missing})")
            below = math.nextafter(at, -math.inf)
            waiting += [box | {entry["cut"]: (at, most, False)}, box | {entry["cut"]: (least, below, False)}]
        else:
            a, b = source[_end(source, box)], target[_end(target, box)]
            if a["leaf"] != entry["leaf"] or _end(target, box) != entry["step"]:
                raise ValueError(f"box {boxes} ends elsewhere than it says")
            if any(a[aspect] is None or a[aspect] != b[aspect] for aspect in certificate["claims"]):
                raise ValueError(f"box {boxes}: program and artifact do not agree")
            boxes += 1
    if waiting:
        raise ValueError("there are boxes missing")
    return boxes


def _end(steps: list[Form], box: Box) -> int:
    index: int = 0
    while "if" in steps[index]:
        answers = _answers(steps[index]["if"], box)
        onwards = steps[index]["then" if answers == {True} else "otherwise"]
        if len(answers) != 1 or onwards <= index:
            raise ValueError(f"step {index}: not all rows of a box go one way, or it leads back")
        index = onwards
    return index


def _answers(condition: Form, box: Box) -> set[bool]:
    """Every answer that rows of the box may give: more than there are, never fewer."""
    if "not" in condition:
        return {not answer for answer in _answers(condition["not"], box)}
    if "all" in condition or "any" in condition:
        settles = "any" in condition
        parts = [_answers(part, box) for part in condition["any" if settles else "all"]]
        if {settles} in parts:
            return {settles}
        return {settles, not settles} if any(len(answers) > 1 for answers in parts) else {not settles}
    least, most, missing = box.get(condition["feature"], (-math.inf, math.inf, True))
    answers = {condition["missing"]} if missing else set()
    ranges = [(float.fromhex(first), float.fromhex(last)) for first, last in condition["in"]]
    if least <= most and not any(first <= least and most <= last for first, last in ranges):
        answers.add(False)
    if any(first <= most and least <= last for first, last in ranges if first <= last and least <= most):
        answers.add(True)
    return answers


def _program_steps(program: Form) -> list[Form]:
    conditions = [{"all": [_interval(atom) for atom in clause]} for clause in program["clauses"]]
    steps, leaves = [], 0
    for node in program["decision"]["nodes"]:
        if "clause" in node:
            steps.append({"if": conditions[node["clause"]], "then": node["then"], "otherwise": node["otherwise"]})
        else:
            listed = [p["hex"] for p in node["probabilities"]]
            numbers = [float.fromhex(p) for p in listed]
            winner = node.get("answer", numbers.index(max(numbers)))
            steps.append({"winner": winner, "probabilities": listed, "leaf": leaves})
            leaves += 1
    return steps


def _interval(atom: Form) -> Form:
    least, most = -math.inf, math.inf
    if "lo" in atom:
        least = float.fromhex(atom["lo"]["hex"])
        least = least if atom["closed"] in ("left", "both") else math.nextafter(least, math.inf)
    if "hi" in atom:
        most = float.fromhex(atom["hi"]["hex"])
        most = most if atom["closed"] in ("right", "both") else math.nextafter(most, -math.inf)
    return {"feature": atom["feature"], "in": [[least.hex(), most.hex()]], "missing": atom["if_missing"]}


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as program_file, open(sys.argv[2], "rb") as file:  # noqa: PTH123
        texts = [each.read(LARGEST + 1) for each in (program_file, file)]
    of = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    try:
        count = verify(parse(texts[0]), parse(texts[1]), of)
    except (ValueError, OSError) as error:
        sys.exit(f"NOT VERIFIED: {error}")
    covered = "what the certificate says was read" if of is None else f"{of}, as it was read"
    print(f"{count} boxes checked: equal on every row ({covered})")  # noqa: T201
