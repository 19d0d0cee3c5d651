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
Range = tuple[float, float, bool]  # the least and the most number, and whether the value may be missing
Texts = tuple[frozenset[str], bool, bool]  # these texts, or with True all others; whether the value may be missing
Box = dict[int, Any]  # feature -> its Range, or its Texts where its values are texts; without an entry it is anything

LARGEST = 256 * 2**20  # bytes of a file
MOST_ASKED = 2_000  # features of one box: each split copies its box
FORM, FORM_KINDS = 2, 3  # of the certificate, the second where features have kinds
DIGEST_FORM, DIGEST_FORM_KINDS = 1, 2  # of what a program's digest covers
ENTRIES = ({"cut", "at"}, {"text", "in"}, {"missing"}, {"leaf", "step"})
LIMITS = {"date": (-719162.0, 2932896.0), "timestamp": (-(2.0**53), 2.0**53)}  # the first and the last that there is


def parse(content: bytes) -> Any:
    """Return the JSON of a file that may come from anyone."""
    if len(content) > LARGEST:
        raise ValueError(f"more than {LARGEST} bytes")
    try:
        return json.loads(content, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> Form:
    """Return an object in which no key appears twice: which one counts depends on who reads it."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key appears twice in one object")
    return dict(pairs)


def verify(program: Form, certificate: Form, artifact: Path | None = None) -> int:
    """Return how many boxes were checked; a ValueError says what is wrong."""
    try:
        form = FORM_KINDS if "kinds" in program else FORM
        if certificate["form"] != form:
            raise ValueError(f"a certificate of form {certificate['form']}, this program needs form {form}")
        if artifact is not None:
            _check_files(certificate["artifact"], artifact)
        return _check_boxes(program, certificate)
    except ValueError:
        raise
    except Exception as error:  # a key that is missing, a list where a number belongs
        raise ValueError(f"it is not a certificate of a program: {type(error).__name__}") from None


def _check_files(covered: dict[str, str], artifact: Path) -> None:
    """Check that the artifact is exactly the files whose SHA-256 the certificate carries."""
    below = [path for path in artifact.rglob("*") if path.is_symlink() or not path.is_dir()]  # a linked folder is one
    files = [artifact] if artifact.is_file() else below
    names = {path.name if artifact.is_file() else path.relative_to(artifact).as_posix(): path for path in files}
    if names.keys() != covered.keys():
        raise ValueError(f"the certificate covers {sorted(covered)}, the artifact has {sorted(names)}")
    for name, path in names.items():
        if hashlib.sha256(path.read_bytes()).hexdigest() != covered[name]:
            raise ValueError(f"{name}: its bytes are not those that the certificate covers")


def _digest(program: Form) -> str:
    """Compute what the program is called: the SHA-256 of its features, classes, clauses and nodes."""
    kinds = {"form": DIGEST_FORM_KINDS, "kinds": program["kinds"]} if "kinds" in program else {"form": DIGEST_FORM}
    form = kinds | {
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
    if "values" in atom:
        return [atom["feature"], "not in" if atom["negated"] else "in", atom["values"], atom["if_missing"]]
    lo = hi = None
    if "lo" in atom:
        lo = [">=" if atom["closed"] in ("left", "both") else ">", float.fromhex(atom["lo"]["hex"]).hex()]
    if "hi" in atom:
        hi = ["<=" if atom["closed"] in ("right", "both") else "<", float.fromhex(atom["hi"]["hex"]).hex()]
    return [atom["feature"], lo, hi, atom["if_missing"]]


def _check_boxes(program: Form, certificate: Form) -> int:
    if _digest(program) != program["digest"]:
        raise ValueError("the digest in the program file is not the digest of its rules")
    claims = certificate["claims"]
    if certificate["program"] != program["digest"] or type(claims) is not list or "winner" not in claims:
        raise ValueError("the certificate is about another program, or claims nothing")
    source, target, boxes = _program_steps(program), certificate["reading"], 0
    kinds = program.get("kinds", ["number"] * len(program["features"]))
    _check_steps(target, kinds)
    waiting: list[Box] = [{}]
    for entry in certificate["boxes"]:
        box = waiting.pop() if waiting else None
        if box is None or len(box) > MOST_ASKED or set(entry) not in ENTRIES:
            raise ValueError("there are boxes too many, one of too many features, or an entry that is none")
        if "step" not in entry:
            waiting += _parts(entry, box, kinds)
        else:
            a, b = source[_end(source, box)], target[_end(target, box)]
            if (
                not _are([entry["leaf"], entry["step"]], int)
                or a["leaf"] != entry["leaf"]
                or _end(target, box) != entry["step"]
            ):
                raise ValueError(f"box {boxes} ends elsewhere than it says")
            if any(a[aspect] is None or a[aspect] != b[aspect] for aspect in certificate["claims"]):
                raise ValueError(f"box {boxes}: program and artifact do not agree")
            boxes += 1
    if waiting:
        raise ValueError("there are boxes missing")
    return boxes


def _is_text(kind: str) -> bool:
    return kind in ("category", "boolean")


def _check_steps(steps: list[Form], kinds: list[str]) -> None:
    """Check that a reading is made of steps and tests that have one meaning: nothing in it is left to be converted."""
    if type(steps) is not list:
        raise ValueError("a reading that is no list of steps")
    for step in steps:
        if set(step) == {"winner", "probabilities", "leaf"}:
            listed = [] if step["probabilities"] is None else step["probabilities"]
            known = _are([step["winner"]], int) and (step["leaf"] is None or _are([step["leaf"]], int))
            known = known and _are(listed, str)
        else:
            known = set(step) == {"if", "then", "otherwise"} and _are([step["then"], step["otherwise"]], int)
        if not known:
            raise ValueError("a step that is none")
    waiting = [step["if"] for step in steps if "if" in step]
    while waiting:
        condition = waiting.pop()
        if set(condition) == {"not"}:
            waiting += [condition["not"]]
        elif set(condition) in ({"all"}, {"any"}):
            waiting += condition.get("all", condition.get("any"))
        else:
            _check_test(condition, kinds)


def _check_test(test: Form, kinds: list[str]) -> None:
    """Check that a test uses texts if the feature has texts, and ranges if it has none."""
    is_text = "texts" in test
    if set(test) != ({"feature", "texts", "negated", "missing"} if is_text else {"feature", "in", "missing"}):
        raise ValueError("a test that is none")
    if not _are([test["feature"]], int) or not 0 <= test["feature"] < len(kinds):
        raise ValueError(f"a test of the feature {test['feature']!r}")
    if is_text != _is_text(kinds[test["feature"]]):
        raise ValueError("a test that does not fit the kind of its feature")
    ends = test["texts"] if is_text else [end for first, last in test["in"] for end in (first, last)]
    if not _are([test["missing"], test.get("negated", False)], bool) or not _are(ends, str):
        raise ValueError("a test of something else than texts or numbers")


def _are(values: list[Any], kind: type) -> bool:
    return type(values) is list and all(type(value) is kind for value in values)


def _parts(entry: Form, box: Box, kinds: list[str]) -> list[Box]:
    """Cut a box in two, the part to be walked first last: together they are the box."""
    feature = next(entry[key] for key in ("cut", "text", "missing") if key in entry)
    if type(feature) is not int or not 0 <= feature < len(kinds):
        raise ValueError(f"a split of the feature {feature!r}")
    if _is_text(kinds[feature]):
        texts, negated, missing = box.get(feature, (frozenset(), True, True))
        if "missing" in entry:
            return [box | {feature: (texts, negated, False)}, box | {feature: (frozenset(), False, True)}]
        if missing or "text" not in entry:
            raise ValueError(f"a split of feature {feature} that leaves out its missing value, or is none of texts")
        listed = frozenset(entry["in"])
        within = listed - texts if negated else listed & texts
        others = (texts | listed, True, False) if negated else (texts - listed, False, False)
        return [box | {feature: others}, box | {feature: (within, False, False)}]
    least, most, missing = box.get(feature, (-math.inf, math.inf, True))
    if "missing" in entry:
        return [box | {feature: (least, most, False)}, box | {feature: (1.0, 0.0, True)}]
    at = float.fromhex(entry["at"])
    if missing or not least < at <= most:
        raise ValueError(f"a split at {at} of values from {least} to {most} (missing: {missing})")
    below = math.nextafter(at, -math.inf)
    return [box | {feature: (at, most, False)}, box | {feature: (least, below, False)}]


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
    if "texts" in condition:
        return _text_answers(condition, box.get(condition["feature"], (frozenset(), True, True)))
    least, most, missing = box.get(condition["feature"], (-math.inf, math.inf, True))
    answers = {condition["missing"]} if missing else set()
    ranges = [(float.fromhex(first), float.fromhex(last)) for first, last in condition["in"]]
    if least <= most and not any(first <= least and most <= last for first, last in ranges):
        answers.add(False)
    if any(first <= most and least <= last for first, last in ranges if first <= last and least <= most):
        answers.add(True)
    return answers


def _text_answers(condition: Form, box: Texts) -> set[bool]:
    """Say whether a text of the box is among those of the test, and whether one is not."""
    (texts, negated, missing), listed = box, frozenset(condition["texts"])
    if negated:  # of the texts that are not in the box's list, some are in no list at all
        inside, outside = bool(listed - texts), True
    else:
        inside, outside = bool(texts & listed), bool(texts - listed)
    if condition["negated"]:
        inside, outside = outside, inside
    return (
        ({True} if inside else set()) | ({False} if outside else set()) | ({condition["missing"]} if missing else set())
    )


def _program_steps(program: Form) -> list[Form]:
    kinds = program.get("kinds", ["number"] * len(program["features"]))
    conditions = [{"all": [_test(atom, kinds[atom["feature"]]) for atom in clause]} for clause in program["clauses"]]
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


def _test(atom: Form, kind: str) -> Form:
    feature, missing = atom["feature"], atom["if_missing"]
    if _is_text(kind):
        return {"feature": feature, "texts": atom["values"], "negated": atom["negated"], "missing": missing}
    least, most = -math.inf, math.inf
    if "lo" in atom:
        least = float.fromhex(atom["lo"]["hex"])
        least = least if atom["closed"] in ("left", "both") else math.nextafter(least, math.inf)
    if "hi" in atom:
        most = float.fromhex(atom["hi"]["hex"])
        most = most if atom["closed"] in ("right", "both") else math.nextafter(most, -math.inf)
    if kind != "number":
        least, most = _whole(least, most, *LIMITS[kind])
    ranges = [[least.hex(), most.hex()]] if least <= most else []
    return {"feature": feature, "in": ranges, "missing": missing}


def _whole(least: float, most: float, first: float, last: float) -> tuple[float, float]:
    """Give a range of days the numbers they own: each those up to the next day, the first and the last all beyond."""
    if least > last or most < first:
        return 1.0, 0.0
    beyond = math.inf if most >= last else math.nextafter(math.floor(most) + 1.0, -math.inf)
    return -math.inf if least <= first else float(math.ceil(least)), beyond


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
