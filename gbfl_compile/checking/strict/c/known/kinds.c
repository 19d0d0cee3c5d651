/* The kinds of features, and the codes of texts, before end.c. */
char @NAME@_kind(int feature)
{
    static const char kinds[$number:features] = $letters:kinds;
    return (feature >= 0 && feature < $number:features) ? kinds[feature] : (char)0;
}
$when:codes{

static const struct {
    const char *text;
    uint32_t length;
} @NAME@_code_texts[$number:text_count] = $sized_texts:code_texts;

static const $uint_type:slot_type @NAME@_code_slots[$number:slot_count] = $masks:code_slots;

static const struct {
    uint32_t first_text;
    uint32_t first_slot;
    uint32_t slot_mask;
} @NAME@_code_features[$number:features] = $masks:code_features;

@REAL@ @NAME@_code(int feature, const char *text, size_t length)
{
    if (@NAME@_kind(feature) != 'c') {
        return (@REAL@)-1;
    }
    const uint32_t first = @NAME@_code_features[feature].first_text;
    const uint32_t mask = @NAME@_code_features[feature].slot_mask;
    const $uint_type:slot_type *const slots = @NAME@_code_slots + @NAME@_code_features[feature].first_slot;
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < length; ++i) {
        hash = (hash ^ (uint32_t)(unsigned char)text[i]) * UINT32_C(16777619);
    }
    for (uint32_t slot = hash & mask; slots[slot] != 0u; slot = (slot + 1u) & mask) {
        const uint32_t place = first + (uint32_t)slots[slot] - 1u;
        if (@NAME@_code_texts[place].length == length) {
            const char *const listed = @NAME@_code_texts[place].text;
            size_t same = 0;
            while (same < length && listed[same] == text[same]) {
                ++same;
            }
            if (same == length) {
                return (@REAL@)slots[slot];
            }
        }
    }
    return (@REAL@)0;
}
$}
