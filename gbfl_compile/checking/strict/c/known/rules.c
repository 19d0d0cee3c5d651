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

$when:bands{
/* For the class that wins, from which lead in points on, how often each class was observed. */
static const int32_t @NAME@_band_begin[$number:band_ends] = $int32s:band_begin;

static const int64_t @NAME@_band_least[$number:bands] = $int64s:band_least;

static const double @NAME@_band_rates[$number:bands][$number:classes] = $doubles:band_rates;

static int @NAME@_rates(const int64_t *points, double *out)
{
    const int best = gbfl_winner(points, $number:classes);
    int64_t lead = INT64_MAX;
    int32_t band = @NAME@_band_begin[best];
    for (int c = 0; c < $number:classes; ++c) {
        if (c != best && points[best] - points[c] < lead) {
            lead = points[best] - points[c];
        }
    }
    while (band + 1 < @NAME@_band_begin[best + 1] && lead >= @NAME@_band_least[band + 1]) {
        ++band;
    }
    for (int c = 0; c < $number:classes; ++c) {
        out[c] = @NAME@_band_rates[band][c];
    }
    return best;
}

int @NAME@_predict_proba(const @REAL@ *x, double *out)
{
    int64_t sums[$number:classes];
    @NAME@_score(x, sums);
    return @NAME@_rates(sums, out);
}

void @NAME@_probabilities(const int64_t *points, size_t n, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        @NAME@_rates(points + i * $number:classes, out + i * $number:classes);
    }
}
$}
$when:softmax{
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
$}
