"""What surrounds the rules in emitted C, as this reader knows it, function by function (c_match says what P_, N_ and
H_ are). What stands in the holes carries decisions and is read.

Where a function is there more than once, each is a form it may have.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from gbfl_compile.check.readers.c_source import parsed

COMMON = """
int P_uses(int feature)
{
    return (feature >= 0 && feature < N_features) ? (int)P_feature_used[feature] : 0;
}
const char *P_feature(int feature)
{
    static const char *const names[N_features] = { H_names };
    return (feature >= 0 && feature < N_features) ? names[feature] : NULL;
}
const char *P_label(int class_number)
{
    static const char *const labels[N_classes] = { H_labels };
    return (class_number >= 0 && class_number < N_classes) ? labels[class_number] : NULL;
}
char P_label_kind(void)
{
    return C_kind;
}
const char *P_digest(void)
{
    return S_digest;
}
"""

TREE = """
static int32_t P_leaf_of(const REAL *x)
{
    H_leaf_of;
}
int P_predict(const REAL *x)
{
    return (int)P_leaf_class[P_leaf_of(x)];
}
int P_predict_proba(const REAL *x, double *out)
{
    return P_leaf(P_leaf_of(x), out);
}
int P_leaf(int32_t leaf, double *out)
{
    if (leaf < 0 || leaf >= N_leaves) {
        return -1;
    }
    for (int c = 0; c < N_classes; ++c) {
        out[c] = P_leaf_probabilities[leaf][c];
    }
    return (int)P_leaf_class[leaf];
}
int32_t P_explain(const REAL *x, uint32_t *held)
{
    const int32_t leaf = P_leaf_of(x);
    if (held != NULL) {
        for (int word = 0; word < N_words; ++word) {
            held[word] = 0u;
        }
        for (int32_t node = P_leaf_node[leaf]; node != 0; node = P_node_above[node] / 2) {
            if (P_node_above[node] % 2 == 1) {
                const int32_t clause = P_node_clause[P_node_above[node] / 2];
                held[clause / 32] |= (uint32_t)1 << (clause % 32);
            }
        }
    }
    return leaf;
}
int P_selftest(void)
{
    for (int v = 0; v < N_golden; ++v) {
        REAL x[N_features];
        for (int f = 0; f < N_features; ++f) {
            x[f] = P_golden_rows[v][f].value;
        }
        if (P_explain(x, NULL) != P_golden_leaf[v] || P_predict(x) != P_golden_class[v]) {
            return v + 1;
        }
    }
    return 0;
}
"""

RULE_SET = """
static void P_find_held(const REAL *x, uint32_t *held)
{
    H_unused;
    for (int word = 0; word < N_words; ++word) {
        held[word] = 0u;
    }
    H_find_held;
}
int P_score(const REAL *x, int64_t *out)
{
    uint32_t held[N_words];
    P_find_held(x, held);
    H_bias;
    for (int word = 0; word < N_words; ++word) {
        uint32_t left = held[word];
        while (left != 0u) {
            const unsigned clause = (unsigned)word * 32u + gbfl_lowest_bit(left);
            for (int c = 0; c < N_classes; ++c) {
                out[c] += P_rule_points[clause][c];
            }
            left &= left - 1u;
        }
    }
    return gbfl_winner(out, N_classes);
}
int P_predict(const REAL *x)
{
    int64_t sums[N_classes];
    return P_score(x, sums);
}
int32_t P_explain(const REAL *x, uint32_t *held)
{
    int32_t count = 0;
    P_find_held(x, held);
    for (int word = 0; word < N_words; ++word) {
        for (uint32_t left = held[word]; left != 0u; left &= left - 1u) {
            ++count;
        }
    }
    return count;
}
int P_predict_proba(const REAL *x, double *out)
{
    int64_t sums[N_classes];
    const int best = P_score(x, sums);
    gbfl_softmax(sums, N_classes, F_worth, out);
    return best;
}
void P_probabilities(const int64_t *points, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        gbfl_softmax(points + i * N_classes, N_classes, F_worth, out + i * N_classes);
    }
}
int P_selftest(void)
{
    for (int v = 0; v < N_golden; ++v) {
        REAL x[N_features];
        int64_t sums[N_classes];
        for (int f = 0; f < N_features; ++f) {
            x[f] = P_golden_rows[v][f].value;
        }
        if (P_score(x, sums) != P_golden_class[v]) {
            return v + 1;
        }
        for (int c = 0; c < N_classes; ++c) {
            if (sums[c] != P_golden_points[v][c]) {
                return v + 1;
            }
        }
    }
    return 0;
}
"""

ROW_BY_ROW = """
void P_VERB_rows(const REAL *x, size_t n, ptrdiff_t stride, OUT *out)
{
    for (size_t i = 0; i < n; ++i) {
        ONE(x);
        x += stride;
    }
}
void P_VERB_columns(const REAL *const *columns, size_t n, OUT *out)
{
    REAL row[N_features] = {0};
    H_VERB_unused;
    for (size_t i = 0; i < n; ++i) {
        H_VERB_fill;
        ONE(row);
    }
}
"""

ONE_ROW = {
    "predict": "out[i] = (int32_t)P_predict({0})",
    "leaf": "out[i] = P_leaf_of({0})",
    "score": "(void)P_score({0}, out + i * N_classes)",
}

GATHER = """
static void P_gather(const REAL *x, size_t n, ptrdiff_t stride, REAL (*block)[GBFL_BLOCK])
{
    for (size_t i = 0; i < n; ++i) {
        H_gather;
        x += stride;
    }
}
static void P_pick(const REAL *const *columns, const REAL **picked)
{
    H_pick;
}
"""

BLOCKS_OF_ANSWERS = """
void P_VERB_rows(const REAL *x, size_t n, ptrdiff_t stride, int32_t *out)
{
    REAL block[N_slots][GBFL_BLOCK];
    const REAL *columns[N_slots];
    for (int slot = 0; slot < N_slots; ++slot) {
        columns[slot] = block[slot];
    }
    while (n > 0) {
        const size_t count = n < GBFL_BLOCK ? n : GBFL_BLOCK;
        P_gather(x, count, stride, block);
        P_KIND_block(columns, 0, count, out);
        n -= count;
        out += count;
        x += (ptrdiff_t)count * (n > 0 ? stride : 0);
    }
}
void P_VERB_columns(const REAL *const *columns, size_t n, int32_t *out)
{
    const REAL *picked[N_slots];
    P_pick(columns, picked);
    P_KIND_block(picked, 0, n, out);
}
static void P_KIND_block(const REAL *const *columns, size_t first, size_t n, int32_t *out)
{
    H_KIND_start;
    for (size_t i = 0; i < n; ++i) {
        H_KIND_row;
    }
}
static void P_KIND_block(const REAL *const *columns, size_t first, size_t n, int32_t *out)
{
    H_KIND_start;
    int64_t found[GBFL_BLOCK];
    for (size_t done = 0; done < n; done += GBFL_BLOCK) {
        const size_t count = n - done < GBFL_BLOCK ? n - done : GBFL_BLOCK;
        for (size_t i = 0; i < count; ++i) {
            H_KIND_wide_row;
        }
        for (size_t i = 0; i < count; ++i) {
            out[done + i] = (int32_t)found[i];
        }
    }
}
"""

BLOCKS_OF_SUMS = """
void P_VERB_rows(const REAL *x, size_t n, ptrdiff_t stride, OUT *out)
{
    REAL block[N_slots][GBFL_BLOCK];
    int64_t sums[N_classes][GBFL_BLOCK];
    const REAL *columns[N_slots];
    for (int slot = 0; slot < N_slots; ++slot) {
        columns[slot] = block[slot];
    }
    while (n > 0) {
        const size_t count = n < GBFL_BLOCK ? n : GBFL_BLOCK;
        P_gather(x, count, stride, block);
        P_sums_block(columns, 0, count, sums);
        P_VERB_of_sums(sums, count, out);
        n -= count;
        out += STEP;
        x += (ptrdiff_t)count * (n > 0 ? stride : 0);
    }
}
void P_VERB_columns(const REAL *const *columns, size_t n, OUT *out)
{
    int64_t sums[N_classes][GBFL_BLOCK];
    const REAL *picked[N_slots];
    P_pick(columns, picked);
    for (size_t first = 0; first < n; first += GBFL_BLOCK) {
        const size_t count = n - first < GBFL_BLOCK ? n - first : GBFL_BLOCK;
        P_sums_block(picked, first, count, sums);
        P_VERB_of_sums(sums, count, out);
        out += STEP;
    }
}
"""

SUMS = """
static void P_predict_of_sums(int64_t (*sums)[GBFL_BLOCK], size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; ++i) {
        int64_t best = sums[0][i];
        int32_t winner = 0;
        for (int c = 1; c < N_classes; ++c) {
            winner = sums[c][i] > best ? (int32_t)c : winner;
            best = sums[c][i] > best ? sums[c][i] : best;
        }
        out[i] = winner;
    }
}
static void P_score_of_sums(int64_t (*sums)[GBFL_BLOCK], size_t n, int64_t *out)
{
    for (size_t i = 0; i < n; ++i) {
        for (int c = 0; c < N_classes; ++c) {
            out[i * N_classes + (size_t)c] = sums[c][i];
        }
    }
}
"""

SELECT_SUMS = """
static void P_sums_block(const REAL *const *columns, size_t first, size_t n, int64_t (*sums)[GBFL_BLOCK])
{
    H_sums_start;
    for (size_t i = 0; i < n; ++i) {
        H_sums_row;
    }
}
"""


@cache
def known(text: str) -> dict[str, list[Any]]:
    """The functions of a known text, by name; several where there are several forms."""
    found: dict[str, list[Any]] = {}
    for node in parsed(text).ext:
        if type(node).__name__ == "FuncDef":
            found.setdefault(node.decl.name, []).append(node)
    return found


def row_by_row(verb: str) -> str:
    """The batch functions that do one row after another."""
    out = "int64_t" if verb == "score" else "int32_t"
    text = ROW_BY_ROW.replace("VERB", verb).replace("OUT", out)
    return text.replace("ONE(x)", ONE_ROW[verb].format("x")).replace("ONE(row)", ONE_ROW[verb].format("row"))


def blocks_of_answers(verb: str, kind: str) -> str:
    """The batch functions of a tree, a block of rows at a time."""
    return BLOCKS_OF_ANSWERS.replace("VERB", verb).replace("KIND", kind)


def blocks_of_sums(verb: str) -> str:
    """The batch functions of a rule set, a block of rows at a time."""
    out, step = ("int64_t", "count * N_classes") if verb == "score" else ("int32_t", "count")
    return BLOCKS_OF_SUMS.replace("VERB", verb).replace("OUT", out).replace("STEP", step)
