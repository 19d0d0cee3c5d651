/* The kernel of bins and bit masks, between gather.c and rules_blocks.c. */
static const @REAL@ @NAME@_cuts[$number:cuts] = $cuts:cut_table;

static const struct {
    uint32_t first_cut;
    uint32_t cut_count;
    uint32_t first_bin;
} @NAME@_bin_features[$number:slots] = $masks:bin_features;

static const int64_t @NAME@_bin_points[$number:bins][$number:classes] = $int64s:bin_points;
$when:masks{

static const uint64_t @NAME@_bin_masks[$number:groups][$number:bins][4] = $masks:bin_masks;

static const int64_t @NAME@_bit_points[$number:bits][$number:classes] = $int64s:bit_points;
$}

GBFL_CLONES
static void @NAME@_find_bins(const @REAL@ *x, const @REAL@ *at, size_t cut_count, uint32_t *bins)
{
    @LANE@ found[GBFL_BLOCK];
    for (size_t i = 0; i < GBFL_BLOCK; ++i) {
        found[i] = 0;
    }
    if (cut_count <= 64) {
        for (size_t i = 0; i < GBFL_BLOCK; i += 16) {
            @LANE@ sum[16] = {0};
            for (size_t k = 0; k < cut_count; ++k) {
                const @REAL@ cut = at[k];
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
                found[i] += x[i] >= at[(size_t)found[i] + half - 1] ? (@LANE@)half : 0;
            }
            left -= half;
        }
        for (size_t i = 0; i < GBFL_BLOCK; ++i) {
            found[i] += x[i] >= at[found[i]] ? 1 : 0;
        }
    }
    for (size_t i = 0; i < GBFL_BLOCK; ++i) {
        bins[i] = (uint32_t)(x[i] == x[i] ? found[i] : (@LANE@)cut_count + 1);
    }
}

GBFL_CLONES
static void @NAME@_sums_block(const @REAL@ *const *columns, size_t first, size_t n, int64_t (*sums)[GBFL_BLOCK])
{
    uint32_t bins[$number:slots][GBFL_BLOCK];
    for (size_t i = 0; i < n; ++i) {
        $each:starts{ sums[$number:class][i] = $integer:start; $}
    }
    for (size_t u = 0; u < $number:used; ++u) {
        @REAL@ values[GBFL_BLOCK] = {0};
        const @REAL@ *x = columns[u] + first;
        if (n < GBFL_BLOCK) {
            for (size_t i = 0; i < n; ++i) {
                values[i] = x[i];
            }
            x = values;
        }
        @NAME@_find_bins(x, @NAME@_cuts + @NAME@_bin_features[u].first_cut, @NAME@_bin_features[u].cut_count, bins[u]);
        for (size_t i = 0; i < n; ++i) {
            bins[u][i] += @NAME@_bin_features[u].first_bin;
            $each:bin_sums{ sums[$number:class][i] += @NAME@_bin_points[bins[u][i]][$number:class]; $}
        }
    }
$when:masks{
    for (size_t g = 0; g < $number:groups; ++g) {
        for (size_t i = 0; i < n; ++i) {
            uint64_t held[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
            for (size_t u = 0; u < $number:used; ++u) {
                const uint64_t *const mask = @NAME@_bin_masks[g][bins[u][i]];
                for (size_t w = 0; w < 4; ++w) {
                    held[w] &= mask[w];
                }
            }
            $each:before{ int64_t $s:class = sums[$number:class][i]; $}
            for (size_t w = 0; w < 4; ++w) {
                uint64_t left = held[w];
                while (left != 0u) {
                    const int64_t *const worth = @NAME@_bit_points[g * 256u + w * 64u + gbfl_lowest_bit(left)];
                    $each:added{ $s:class += worth[$number:class]; $}
                    left &= left - 1u;
                }
            }
            $each:after{ sums[$number:class][i] = $s:class; $}
        }
    }
$}
}
