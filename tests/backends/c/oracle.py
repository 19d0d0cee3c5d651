"""A second opinion in C: `evaluate` transcribed as a table walk, and a driver that feeds random bits to both.

It shares nothing with the emitter: bounds are written as bits of doubles, and every row is decided on doubles
whatever the scorer reads.
"""

import struct

from gbfl_compile.ir.nodes import Leaf, Scorecard

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>

typedef struct { int feature, has_lo, has_hi, lo_closed, hi_closed, if_missing; uint64_t lo, hi; } atom;

static double of_bits(uint64_t bits) { union { uint64_t b; double d; } u; u.b = bits; return u.d; }
static uint64_t state = 88172645463325252u;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }

static int atom_holds(const atom *a, double x)
{
    if (x != x) return a->if_missing;
    if (a->has_lo && !(a->lo_closed ? x >= of_bits(a->lo) : x > of_bits(a->lo))) return 0;
    if (a->has_hi && !(a->hi_closed ? x <= of_bits(a->hi) : x < of_bits(a->hi))) return 0;
    return 1;
}

static int clause_holds(int clause, const real *x)
{
    for (int i = clause_start[clause]; i < clause_start[clause + 1]; ++i)
        if (!atom_holds(&atoms[i], (double)x[atoms[i].feature])) return 0;
    return 1;
}

/* A value worth asking: random bits, a bound, a neighbour of a bound, or an ordinary number. */
static real value(void)
{
    const uint64_t r = next();
    union { uint64_t b; double d; } u;
    union { uint32_t b; float f; } v;
    const atom *a = &atoms[(r >> 8) % ATOMS];
    u.b = (r & 16) ? a->lo : a->hi;
    v.f = u.d > 3e38 || u.d < -3e38 ? 0.0f : (float)u.d;
    switch (r & 7) {
    case 0: case 1: u.b = next(); v.b = (uint32_t)(u.b >> 17); break;
    case 2: u.b += 1; v.b += 1; break;
    case 3: u.b -= 1; v.b -= 1; break;
    case 4: case 5: u.d = (double)(int64_t)next() / 4e18; v.f = (float)u.d; break;
    default: break;
    }
    return sizeof(real) == 8 ? (real)u.d : (real)v.f;
}

#define ROWS 1000
static real rows[ROWS][FEATURES];
static real turned[FEATURES][ROWS];

int main(int count, char **arguments)
{
    long left = count > 1 ? atol(arguments[1]) : 100000;
    const real *columns[FEATURES];
    for (int f = 0; f < FEATURES; ++f) columns[f] = turned[f];
    if (m_selftest() != 0) { printf("selftest\n"); return 1; }
    while (left > 0) {
        const size_t n = ROWS - (size_t)(next() % 70);
        left -= (long)n;
        for (size_t i = 0; i < n; ++i)
            for (int f = 0; f < FEATURES; ++f) turned[f][i] = rows[i][f] = value();
        static int32_t by_rows[ROWS], by_columns[ROWS];
        m_predict_rows(&rows[0][0], n, FEATURES, by_rows);
        m_predict_columns(columns, n, by_columns);
        static decided deciding_rows[ROWS * WIDTH], deciding_columns[ROWS * WIDTH];
        decide_rows(&rows[0][0], n, FEATURES, deciding_rows);
        decide_columns(columns, n, deciding_columns);
        for (size_t i = 0; i < n; ++i) {
            int64_t want[WIDTH];
            const int best = oracle(rows[i], want);
            int wrong = by_rows[i] != best || by_columns[i] != best || m_predict(rows[i]) != best;
            for (int c = 0; c < WIDTH; ++c)
                wrong |= deciding_rows[i * WIDTH + (size_t)c] != want[c] || deciding_columns[i * WIDTH + (size_t)c] != want[c];
            uint32_t held[m_HELD_WORDS];
            const int32_t reason = m_explain(rows[i], held);
            wrong |= IS_TREE ? reason != want[0] : 0;
            if (wrong) { printf("row %ld of a batch differs\n", (long)i); return 1; }
        }
    }
    return 0;
}
"""


def bits(value):
    return f"0x{struct.unpack('<Q', struct.pack('<d', value or 0.0))[0]:x}u"


def oracle_source(program, real):
    """A whole test program for a scorer called `m`."""
    atoms, starts = [], [0]
    for clause in program.clauses:
        for a in clause.atoms:
            flags = [a.feature, a.lo is not None, a.hi is not None, a.lo_closed, a.hi_closed, a.if_missing]
            atoms.append("{" + ", ".join(str(int(flag)) for flag in flags) + f", {bits(a.lo)}, {bits(a.hi)}}}")
        starts.append(len(atoms))
    card = isinstance(program.decision, Scorecard)
    width = len(program.classes) if card else 1
    head = [
        '#include "m.h"',
        f"typedef {real} real;",
        f"typedef {'int64_t' if card else 'int32_t'} decided;",
        f"enum {{ FEATURES = {len(program.features)}, ATOMS = {len(atoms)}, WIDTH = {width}, IS_TREE = {int(not card)} }};",
        f"#define decide_rows m_{'score' if card else 'leaf'}_rows",
        f"#define decide_columns m_{'score' if card else 'leaf'}_columns",
    ]
    driver, main = DRIVER.split("#define ROWS 1000")
    types, functions = driver.split("\nstatic double of_bits", 1)
    tables = [
        f"static const atom atoms[] = {{{', '.join(atoms)}}};",
        f"static const int clause_start[] = {{{', '.join(map(str, starts))}}};",
    ]
    walk = _card_walk(program.decision) if card else _tree_walk(program.decision)
    return "\n".join([*head, types, *tables, "static double of_bits" + functions, *walk, "#define ROWS 1000" + main])


def _card_walk(card):
    rows = ", ".join("{" + ", ".join(f"INT64_C({p})" for p in row) + "}" for row in (card.bias, *card.points))
    return [
        f"static const int64_t points[][WIDTH] = {{{rows}}};",
        "static int oracle(const real *x, int64_t *want) {",
        "    for (int c = 0; c < WIDTH; ++c) want[c] = points[0][c];",
        f"    for (int k = 0; k < {len(card.points)}; ++k)",
        "        if (clause_holds(k, x)) for (int c = 0; c < WIDTH; ++c) want[c] += points[k + 1][c];",
        "    int best = 0;",
        "    for (int c = 1; c < WIDTH; ++c) if (want[c] > want[best]) best = c;",
        "    return best;",
        "}",
    ]


def _tree_walk(tree):
    rows, leaves = [], 0
    for node in tree.nodes:
        if isinstance(node, Leaf):
            best = max(range(len(node.probabilities)), key=lambda c: (node.probabilities[c], -c))
            rows.append(f"{{-1, {leaves}, {best}}}")
            leaves += 1
        else:
            rows.append(f"{{{node.clause}, {node.then}, {node.otherwise}}}")
    return [
        f"static const int nodes[][3] = {{{', '.join(rows)}}};",
        "static int oracle(const real *x, int64_t *want) {",
        "    int at = 0;",
        "    while (nodes[at][0] >= 0) at = clause_holds(nodes[at][0], x) ? nodes[at][1] : nodes[at][2];",
        "    want[0] = nodes[at][1];",
        "    return nodes[at][2];",
        "}",
    ]
