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

REASONS = """
const char *P_reason(int clause)
{
    static const char *const reasons[N_reasons] = { H_reasons };
    return (clause >= 0 && clause < N_reasons && reasons[clause][0] != 0) ? reasons[clause] : NULL;
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


@cache
def known(text: str) -> dict[str, list[Any]]:
    """The functions of a known text, by name; several where there are several forms."""
    found: dict[str, list[Any]] = {}
    for node in parsed(text).ext:
        if type(node).__name__ == "FuncDef":
            found.setdefault(node.decl.name, []).append(node)
    return found
