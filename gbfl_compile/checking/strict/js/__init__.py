"""Reads an emitted JavaScript module back, from its text alone: every token is accounted for, and none of it is run.

The module is taken token by token: tables of literals, the rules (rules.py), the two functions that hand a row's
values to them, and around these functions that must be, token by token, the known ones (known/). One reading: both
functions of the module answer by the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

from gbfl_compile.checking.reading.conditions import decision_of
from gbfl_compile.checking.reading.nodes import (
    Outcome,
    PointDecision,
    Reading,
    Step,
    StepDecision,
    Unread,
    bands_by_class,
    class_labels,
    feature_names,
    leaf_outcome,
    reasons_by_clause,
    rows_of_points,
    scale_of,
    way_to,
)
from gbfl_compile.checking.strict.js.lexer import Cursor, tokens
from gbfl_compile.checking.strict.js.rules import Parameter, Scope, clause_conditions, steps_of, texts_in
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import TRUE, Kind, Label

KNOWN = Path(__file__).parent / "known"
PACKAGE = b'{\n  "private": true,\n  "type": "module"\n}\n'
EXACT = 2**53
"""Below this, sums of whole numbers are exact in JavaScript."""

TYPES: Mapping[str, str] = {
    "number": "number",
    "category": "string",
    "boolean": "boolean",
    "date": "string",
    "timestamp": "string | Date",
}


def read_js(files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """The reading of the one .js file; types and package.json, if present, must be those of such a module."""
    modules = [name for name in files if name.endswith(".js")]
    if len(modules) != 1:
        raise Unread(f"{len(modules)} .js files: the artifact is one module")
    (name,) = modules
    types = f"{name.removesuffix('.js')}.d.ts"
    for other in sorted(files.keys() - {name, types, "package.json"}):
        raise Unread(f"{other}: is not a file of such a module")
    if files.get("package.json", PACKAGE) != PACKAGE:
        raise Unread("package.json: is not the one of such a module")
    try:
        module = Module(Cursor(tokens(files[name])))
        reading = module.reading()
    except Unread as error:
        raise Unread(f"{name}: {error}") from None
    if types in files and tokens(files[types]).words != module.type_tokens():
        raise Unread(f"{types}: are not the types of {name}")
    return (reading,)


@cache
def known_tokens(file: str) -> tuple[str, ...]:
    """The tokens of one of the files in known/."""
    return tuple(tokens((KNOWN / file).read_bytes()).words)


class Module:
    """A module being read, from its first token to its last."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.feature_words: list[tuple[str, Kind]] = []

    def reading(self) -> Reading:
        """The whole module, or Unread."""
        cursor = self.cursor
        cursor.expect("export const DIGEST =")
        digest = cursor.text()
        cursor.expect("; export const FEATURES = Object . freeze ( [")
        self.features, self.kinds = self._features()
        cursor.expect("export const CLASSES = Object . freeze ( [")
        self.classes = self._classes()
        cursor.expect("export const CLAUSES = Object . freeze ( [")
        self.clauses = self._texts()
        self.has_reasons = cursor.take("export const REASONS = Object . freeze ( {")
        reasons = self._reasons() if self.has_reasons else {}
        scope = self._scope()
        cursor.expect("function rules (")
        body = self._parameters(scope)
        self.used = self._score(scope)
        self._score_columns()
        after, cursor.at = cursor.at, body
        self.is_tree = self.cursor.words[after : after + 2] == ["const", "LEAVES"]
        decision = self._tree(scope, after) if self.is_tree else self._rule_set(scope, after)
        cursor.expect_words(known_tokens("values.js.txt"))
        if self.kinds:
            cursor.expect_words(known_tokens("kinds.js.txt"))
        cursor.expect_end()
        table = reasons_by_clause(reasons, len(self.clauses))
        book = scope.book.texts if self.kinds else ()
        return Reading(
            self.features,
            self.classes,
            decision,
            place="rules",
            digest=digest,
            texts=self.clauses,
            reasons=table,
            kinds=self.kinds,
            book=book,
        )

    def _features(self) -> tuple[tuple[str, ...], tuple[Kind, ...]]:
        cursor = self.cursor
        names: list[str] = []
        kinds: list[Kind] = []
        while cursor.take("Object . freeze ( { name :"):
            names.append(cursor.text())
            cursor.expect(", kind :")
            written = cursor.text()
            kind = next((kind for kind in get_args(Kind) if kind == written), None)
            if kind is None:
                cursor.refuse(f"a kind that is not known: {written}")
            kinds.append(kind)
            self.feature_words.append((cursor.words[cursor.at - 5], kind))
            cursor.expect("} ) ,")
        cursor.expect("] ) ;")
        return feature_names(names), () if set(kinds) <= {"number"} else tuple(kinds)

    def _classes(self) -> tuple[Label, ...]:
        start = self.cursor.at
        labels: list[object] = [self.cursor.label()]
        while self.cursor.take(","):
            labels.append(self.cursor.label())
        self.label_words = self.cursor.words[start : self.cursor.at : 2]
        self.cursor.expect("] ) ;")
        return class_labels(labels)

    def _texts(self) -> tuple[str, ...]:
        texts = []
        while not self.cursor.take("] ) ;"):
            texts.append(self.cursor.text())
            self.cursor.expect(",")
        return tuple(texts)

    def _reasons(self) -> dict[int, str]:
        reasons: dict[int, str] = {}
        while not self.cursor.take("} ) ;"):
            clause = self.cursor.count()
            self.cursor.expect(":")
            if clause in reasons:
                self.cursor.refuse(f"REASONS has {clause} twice")
            reasons[clause] = self.cursor.text()
            self.cursor.expect(",")
        return reasons

    def _scope(self) -> Scope:
        """The sets of texts, which have numbered names."""
        sets: dict[str, frozenset[str]] = {}
        while self.cursor.take("const"):
            name = f"SET{len(sets)}"
            self.cursor.expect(f"{name} = new Set ( [")
            texts = [self.cursor.text()]
            while self.cursor.take(","):
                texts.append(self.cursor.text())
            self.cursor.expect("] ) ;")
            sets[name] = frozenset(texts)
        return Scope(sets)

    def _parameters(self, scope: Scope) -> int:
        """The names of the parameters. Returns where the body begins; it is read once their features are known."""
        cursor = self.cursor
        while not cursor.take(") {"):
            if scope.names:
                cursor.expect(",")
            name = cursor.name()
            if name in scope.names:
                cursor.refuse(f"two parameters are called {name}")
            scope.names.append(name)
        body, depth = cursor.at, 1
        while depth:
            depth += {"{": 1, "}": -1}.get(cursor.next(), 0)
        scope.end = cursor.at
        return body

    def _score(self, scope: Scope) -> list[tuple[str, Kind]]:
        """`score` hands each value to the function of its kind, in the order of the parameters."""
        cursor = self.cursor
        cursor.expect("export function score ( row ) { return answer ( rules (")
        used: list[tuple[str, Kind]] = []
        for name in scope.names:
            reader = cursor.next()
            cursor.expect("(")
            feature = cursor.text()
            index = self.features.index(feature) if feature in self.features else None
            if index is None or any(parameter.index == index for parameter in scope.parameters.values()):
                cursor.refuse(f"{feature!r} is not a feature, or is read twice")
            kind: Kind = self.kinds[index] if self.kinds else "number"
            again = cursor.words[cursor.at - 1]
            cursor.expect("in BASE ? own ( row , $ ) : row [ $ ] , $ , row ) ,", again)
            if reader != kind:
                cursor.refuse(f"{feature!r} is a {kind} and read as a {reader}")
            used.append((again, kind))
            scope.parameters[name] = Parameter(index, kind)
        cursor.expect(") , ) ; }")
        return used

    def _score_columns(self) -> None:
        """`scoreColumns` does the same with each column's values."""
        cursor = self.cursor
        cursor.expect("export function scoreColumns ( columns ) { const length = rowsIn ( columns ) ;")
        for place, (feature, _) in enumerate(self.used):
            cursor.expect(f"const column{place} = own ( columns , $ ) ;", feature)
        cursor.expect(
            "const answers = [ ] ; for ( let i = 0 ; i < length ; i += 1 ) { answers . push ( answer ( rules ("
        )
        for place, (feature, kind) in enumerate(self.used):
            cursor.expect(f"{kind} ( column{place} [ i ] , $ , columns ) ,", feature)
        cursor.expect(") , ) , ) ; } return answers ; }")

    def _tree(self, scope: Scope, after: int) -> StepDecision:
        cursor = self.cursor
        scope.book = self._book(scope)
        value = steps_of(cursor, scope)
        self._end_of_rules(scope, after)
        cursor.expect("const LEAVES = [")
        leaves: list[tuple[int, tuple[float, ...], int]] = []
        while cursor.take("["):
            winner = cursor.count()
            cursor.expect(", [")
            probabilities = cursor.doubles()
            cursor.expect(",")
            leaves.append((winner, probabilities, cursor.whole()))
            cursor.expect("] ,")
        cursor.expect("] ; const STEPS = [")
        steps: list[Step] = []
        while cursor.take("["):
            before = cursor.whole()
            cursor.expect(",")
            clause = cursor.count()
            cursor.expect(",")
            steps.append((before, clause, cursor.truth()))
            cursor.expect("] ,")
        cursor.expect("] ;")
        cursor.expect_words(known_tokens("tree.js.txt"))

        def outcome(leaf: int) -> Outcome:
            if leaf >= len(leaves):
                raise Unread(f"rules returns {leaf}, there are {len(leaves)} leaves")
            winner, probabilities, last = leaves[leaf]
            way = way_to(steps, last, len(self.clauses))
            answer = leaf_outcome(f"LEAVES: leaf {leaf}", winner, probabilities, len(self.classes), leaf)
            return replace(answer, held=tuple(sorted(clause for clause, held in way if held)), way=way)

        return decision_of(value, outcome)

    def _rule_set(self, scope: Scope, after: int) -> PointDecision:
        cursor = self.cursor
        scope.book = self._book(scope)
        conditions = clause_conditions(cursor, scope)
        self._end_of_rules(scope, after)
        cursor.expect("const BIAS = [")
        bias = self._row_of_points()
        cursor.expect("; const POINTS = [")
        points = []
        while cursor.take("["):
            points.append(self._row_of_points())
            cursor.expect(",")
        cursor.expect("] ;")
        bands = bands_by_class(self._bands(), len(self.classes)) if cursor.take("const BANDS = [") else ()
        scale = None
        if not bands:
            cursor.expect("const WORTH =")
            scale = scale_of(cursor.double())
            cursor.expect(";")
        cursor.expect_words(
            (*known_tokens("rule_set.js.txt"), *known_tokens("bands.js.txt" if bands else "softmax.js.txt"))
        )
        rows_of_points((bias, *points), "points", len(self.classes))
        if not len(conditions) == len(points) == len(self.clauses):
            raise Unread(f"{len(conditions)} rules, {len(points)} in POINTS, {len(self.clauses)} in CLAUSES")
        if any(sum(abs(row[c]) for row in (bias, *points)) >= EXACT for c in range(len(self.classes))):
            raise Unread("points that may add up past 2^53")
        return PointDecision(bias, tuple(zip(conditions, points, strict=True)), scale, held=conditions, bands=bands)

    def _end_of_rules(self, scope: Scope, after: int) -> None:
        """The brace that ends the rules, and on to what follows the functions that were read before."""
        self.cursor.expect("}")
        if self.cursor.at != scope.end:
            self.cursor.refuse("the rules end too early")
        self.cursor.at = after

    def _bands(self) -> tuple[tuple[tuple[int, tuple[float, ...]], ...], ...]:
        cursor = self.cursor
        by_class = []
        while cursor.take("["):
            own = []
            while cursor.take("["):
                least = cursor.count()
                cursor.expect(", [")
                own.append((least, cursor.doubles()))
                cursor.expect("] ,")
            cursor.expect("] ,")
            by_class.append(tuple(own))
        cursor.expect("] ;")
        return tuple(by_class)

    def _row_of_points(self) -> tuple[int, ...]:
        row = [self.cursor.whole()]
        while self.cursor.take(","):
            row.append(self.cursor.whole())
        self.cursor.expect("]")
        return tuple(row)

    def _book(self, scope: Scope) -> Codebook:
        """The codes of the texts that the rules mention."""
        mentioned = texts_in(self.cursor.words[self.cursor.at : scope.end], scope)
        texts = {"category": mentioned, "boolean": (TRUE,)}
        return Codebook(tuple(texts.get(kind, ()) for kind in self.kinds))

    def type_tokens(self) -> list[str]:
        """The tokens of the types that such a module has."""
        used = {feature for feature, _ in self.used}
        rows, columns = [], []
        for word, kind in self.feature_words:
            name = f"readonly {word}{'' if word in used else '?'} :"
            rows.append(f"{name} {TYPES[kind]} | null | undefined ;")
            columns.append(f"{name} ArrayLike < {TYPES[kind]} | null | undefined > ;")
        parts = {
            "LABELS": " | ".join(self.label_words) if isinstance(self.classes[0], str) else self._label_type(),
            "ROWS": "\n".join(rows),
            "COLUMNS": "\n".join(columns),
            "LEAF": "number" if self.is_tree else "null",
            "SCORES": "null" if self.is_tree else "readonly number[]",
            "REASONS": "export declare const REASONS: Readonly<Record<number, string>>;" if self.has_reasons else "",
        }
        text = (KNOWN / "types.d.ts.txt").read_text(encoding="ascii")
        text = re.sub("@([A-Z]+)@", lambda part: parts[part[1]], text)
        return tokens(text.encode("ascii")).words

    def _label_type(self) -> str:
        return "boolean" if isinstance(self.classes[0], bool) else "number"
