"""The kernel of bins and bit masks, as this reader knows it: its meaning is in its tables, which c_bits reads."""

from __future__ import annotations

FIND_BINS = """
static void P_find_bins(const REAL *x, const REAL *at, size_t cut_count, uint32_t *bins)
{
    LANE found[GBFL_BLOCK];
    for (size_t i = 0; i < GBFL_BLOCK; ++i) {
        found[i] = 0;
    }
    if (cut_count <= N_most_counted) {
        for (size_t i = 0; i < GBFL_BLOCK; i += 16) {
            LANE sum[16] = {0};
            for (size_t k = 0; k < cut_count; ++k) {
                const REAL cut = at[k];
                for (size_t j = 0; j < 16; ++j) {
                    sum[j] += x[i + j] >= cut ? 1 : 0;
                }
            }
            for (size_t j = 0; j < 16; ++j) {
                found[i + j] = sum[j];
            }
        }
    } else {
        size_t left = cut_count;
        while (left > 1) {
            const size_t half = left / 2;
            for (size_t i = 0; i < GBFL_BLOCK; ++i) {
                found[i] += x[i] >= at[(size_t)found[i] + half - 1] ? (LANE)half : 0;
            }
            left -= half;
        }
        for (size_t i = 0; i < GBFL_BLOCK; ++i) {
            found[i] += x[i] >= at[found[i]] ? 1 : 0;
        }
    }
    for (size_t i = 0; i < GBFL_BLOCK; ++i) {
        bins[i] = (uint32_t)(x[i] == x[i] ? found[i] : (LANE)cut_count + 1);
    }
}
"""

SUMS_START = """
static void P_sums_block(const REAL *const *columns, size_t first, size_t n, int64_t (*sums)[GBFL_BLOCK])
{
    uint32_t bins[N_slots][GBFL_BLOCK];
    for (size_t i = 0; i < n; ++i) {
        H_sums_bias;
    }
    for (size_t u = 0; u < N_used; ++u) {
        REAL values[GBFL_BLOCK] = {0};
        const REAL *x = columns[u] + first;
        if (n < GBFL_BLOCK) {
            for (size_t i = 0; i < n; ++i) {
                values[i] = x[i];
            }
            x = values;
        }
        P_find_bins(x, P_cuts + P_bin_features[u].first_cut, P_bin_features[u].cut_count, bins[u]);
        for (size_t i = 0; i < n; ++i) {
            bins[u][i] += P_bin_features[u].first_bin;
            H_bin_points;
        }
    }
"""

SUMS_MASKS = """
    for (size_t g = 0; g < N_groups; ++g) {
        for (size_t i = 0; i < n; ++i) {
            uint64_t held[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
            for (size_t u = 0; u < N_used; ++u) {
                const uint64_t *const mask = P_bin_masks[g][bins[u][i]];
                for (size_t w = 0; w < 4; ++w) {
                    held[w] &= mask[w];
                }
            }
            TAKE
            for (size_t w = 0; w < 4; ++w) {
                uint64_t left = held[w];
                while (left != 0u) {
                    const int64_t *const worth = P_bit_points[g * 256u + w * 64u + gbfl_lowest_bit(left)];
                    ADD
                    left &= left - 1u;
                }
            }
            GIVE
        }
    }
"""

BIN_POINTS = "static void P_one(void) { sums[N_class][i] += P_bin_points[bins[u][i]][N_class]; }"


def bits_text(real: str, classes: int, masked: bool) -> str:
    """The kernel for so many classes, with or without rules of several intervals."""
    numbers = range(classes)
    masks = SUMS_MASKS.replace("TAKE", "".join(f"int64_t s{c} = sums[{c}][i];" for c in numbers))
    masks = masks.replace("ADD", "".join(f"s{c} += worth[{c}];" for c in numbers))
    masks = masks.replace("GIVE", "".join(f"sums[{c}][i] = s{c};" for c in numbers))
    text = FIND_BINS + SUMS_START + (masks if masked else "") + "}"
    return text.replace("LANE", "int64_t" if real == "double" else "int32_t")
