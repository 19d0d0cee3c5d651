/* A rule set, one row at a time. */
static void @NAME@_find_held(const @REAL@ *x, uint32_t *held)
{
    $each:unused{ (void)x; $}
    for (int word = 0; word < $number:words; ++word) {
        held[word] = 0u;
    }
    $each:rules{
    if ($one_row:holds) { held[$number:word] |= $mask:bit; }
    $}
}

static const $int_type:points_type @NAME@_rule_points[$number:point_rows][$number:classes] = $int64s:rule_points;

int @NAME@_score(const @REAL@ *x, int64_t *out)
{
    uint32_t held[$number:words];
    @NAME@_find_held(x, held);
    $each:bias{ out[$number:class] = $integer:start; $}
    for (int word = 0; word < $number:words; ++word) {
        uint32_t left = held[word];
        while (left != 0u) {
            const unsigned clause = (unsigned)word * 32u + gbfl_lowest_bit(left);
            for (int c = 0; c < $number:classes; ++c) {
                out[c] += @NAME@_rule_points[clause][c];
            }
            left &= left - 1u;
        }
    }
    return gbfl_winner(out, $number:classes);
}

int @NAME@_predict(const @REAL@ *x)
{
    int64_t sums[$number:classes];
    return @NAME@_score(x, sums);
}

int32_t @NAME@_explain(const @REAL@ *x, uint32_t *held)
{
    int32_t count = 0;
    @NAME@_find_held(x, held);
    for (int word = 0; word < $number:words; ++word) {
        for (uint32_t left = held[word]; left != 0u; left &= left - 1u) {
            ++count;
        }
    }
    return count;
}

#ifdef GBFL_WITH_LIBM
int @NAME@_predict_proba(const @REAL@ *x, double *out)
{
    int64_t sums[$number:classes];
    const int best = @NAME@_score(x, sums);
    gbfl_softmax(sums, $number:classes, $double:worth, out);
    return best;
}

void @NAME@_probabilities(const int64_t *points, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        gbfl_softmax(points + i * $number:classes, $number:classes, $double:worth, out + i * $number:classes);
    }
}
#endif
