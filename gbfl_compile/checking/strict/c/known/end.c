/* Names, labels and the self-test: how every model ends. */
static const unsigned char @NAME@_feature_used[$number:features] = $flags:feature_used;

int @NAME@_uses(int feature)
{
    return (feature >= 0 && feature < $number:features) ? (int)@NAME@_feature_used[feature] : 0;
}

const char *@NAME@_feature(int feature)
{
    static const char *const names[$number:features] = $texts:feature_names;
    return (feature >= 0 && feature < $number:features) ? names[feature] : NULL;
}

const char *@NAME@_label(int class_number)
{
    static const char *const labels[$number:classes] = $texts:labels;
    return (class_number >= 0 && class_number < $number:classes) ? labels[class_number] : NULL;
}

$when:reasons{
const char *@NAME@_reason(int clause)
{
    static const char *const reasons[$number:clauses] = $texts:reasons;
    return (clause >= 0 && clause < $number:clauses && reasons[clause][0] != 0) ? reasons[clause] : NULL;
}
$}

char @NAME@_label_kind(void)
{
    return $letter:label_kind;
}

const char *@NAME@_digest(void)
{
    return $text:digest;
}

typedef union {
    uint@BITS@_t bits;
    @REAL@ value;
} @NAME@_golden_value;

static const @NAME@_golden_value @NAME@_golden_rows[$number:golden][$number:features] = $masks:golden_rows;

static const int @NAME@_golden_class[$number:golden] = $int32s:golden_class;
$when:tree{
static const int32_t @NAME@_golden_leaf[$number:golden] = $int32s:golden_leaf;
$}
$when:rules{
static const int64_t @NAME@_golden_points[$number:golden][$number:classes] = $int64s:golden_points;
$}

int @NAME@_selftest(void)
{
    for (int v = 0; v < $number:golden; ++v) {
        @REAL@ x[$number:features];
$when:rules{
        int64_t sums[$number:classes];
$}
        for (int f = 0; f < $number:features; ++f) {
            const volatile @REAL@ value = @NAME@_golden_rows[v][f].value;
            x[f] = value;
        }
$when:tree{
        if (@NAME@_explain(x, NULL) != @NAME@_golden_leaf[v] || @NAME@_predict(x) != @NAME@_golden_class[v]) {
            return v + 1;
        }
$}
$when:rules{
        if (@NAME@_score(x, sums) != @NAME@_golden_class[v]) {
            return v + 1;
        }
        for (int c = 0; c < $number:classes; ++c) {
            if (sums[c] != @NAME@_golden_points[v][c]) {
                return v + 1;
            }
        }
$}
    }
    return 0;
}
