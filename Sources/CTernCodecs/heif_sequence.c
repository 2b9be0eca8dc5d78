// Reads the starts of parameter sets and slices of HEVC (ITU-T H.265), which the HEVC decoder trusts.
#include "heif_survey.h"

#if defined(__linux__)
typedef struct {
    uint8_t bytes[TERN_HEIF_SEQUENCE];
    size_t count, bit;
    bool isShort;
} bits;

static uint32_t takeBits(bits *from, unsigned number) {
    uint32_t value = 0;
    for (unsigned i = 0; i < number; i++, from->bit++) {
        const size_t byte = from->bit / 8;
        if (byte >= from->count) {
            from->isShort = true;
            return 0;
        }
        value = value << 1 | (from->bytes[byte] >> (7 - from->bit % 8) & 1);
    }
    return value;
}

/// Reads a number of the kind ue(v) (ITU-T H.265, §9.2).
static uint32_t takeNumber(bits *from) {
    unsigned zeros = 0;
    while (zeros < 32 && !from->isShort && takeBits(from, 1) == 0) zeros++;
    if (zeros > 31) from->isShort = true;
    return from->isShort ? 0 : (1u << zeros) - 1 + takeBits(from, zeros);
}

static bits open(const uint8_t *unit, size_t count) {
    bits from = {.count = 0};
    for (size_t i = 0, zeros = 0; i < count && from.count < TERN_HEIF_SEQUENCE; i++) {
        // A byte 3 behind two zeros separates the unit from the marks between units.
        if (zeros >= 2 && unit[i] == 3) {
            zeros = 0;
            continue;
        }
        zeros = unit[i] == 0 ? zeros + 1 : 0;
        from.bytes[from.count++] = unit[i];
    }
    return from;
}

bool tern_heif_sequence(const uint8_t *unit, size_t count, tern_heif_size *into) {
    bits from = open(unit, count);
    takeBits(&from, 4);
    const unsigned layers = takeBits(&from, 3);
    takeBits(&from, 1);
    for (unsigned i = 0; i < 12; i++) takeBits(&from, 8);
    unsigned sizes = 0;
    for (unsigned i = 0; layers > 0 && i < 8; i++) {
        const unsigned present = takeBits(&from, 2);
        if (i < layers) sizes += (present >> 1) * 88 + (present & 1) * 8;
    }
    for (unsigned i = 0; i < sizes; i += 8) takeBits(&from, 8);
    into->number = takeNumber(&from);
    into->chroma = takeNumber(&from);
    if (into->chroma == 3) takeBits(&from, 1);
    into->width = takeNumber(&from);
    into->height = takeNumber(&from);
    uint64_t across = 0, down = 0;
    if (takeBits(&from, 1)) {
        across = takeNumber(&from);
        across += takeNumber(&from);
        down = takeNumber(&from);
        down += takeNumber(&from);
    }
    across *= into->chroma == 1 || into->chroma == 2 ? 2 : 1;
    down *= into->chroma == 1 ? 2 : 1;
    into->shownWidth = into->width > across ? into->width - across : 0;
    into->shownHeight = into->height > down ? into->height - down : 0;
    into->isDeep = takeNumber(&from) > 0;
    if (takeNumber(&from) > 0) into->isDeep = true;
    takeNumber(&from);
    for (unsigned i = takeBits(&from, 1) ? 0 : layers; i <= layers; i++)
        for (unsigned j = 0; j < 3; j++) takeNumber(&from);
    const unsigned least = takeNumber(&from), side = 3 + least + takeNumber(&from);
    if (from.isShort || layers > 6 || into->chroma > 3 || least > 3 || side > 6) return false;
    // libde265 would write a line to the standard error stream.
    if (((into->width | into->height) & ((8u << least) - 1)) != 0) return false;
    const uint64_t round = (1u << side) - 1;
    into->blocks = ((into->width + round) >> side) * ((into->height + round) >> side);
    return true;
}

bool tern_heif_picture(const uint8_t *unit, size_t count, tern_heif_set *into) {
    bits from = open(unit, count);
    into->number = takeNumber(&from);
    into->sequence = takeNumber(&from);
    into->hasDependents = takeBits(&from, 1);
    takeBits(&from, 1);
    into->reserve = takeBits(&from, 3);
    return !from.isShort;
}

uint32_t tern_heif_slice_set(const uint8_t *unit, size_t count) {
    bits from = open(unit, count);
    takeBits(&from, 2);
    const uint32_t number = takeNumber(&from);
    return from.isShort ? UINT32_MAX : number;
}

bool tern_heif_is_intra(const uint8_t *unit, size_t count, const tern_heif_set *set, uint64_t blocks) {
    enum { INTRA = 2 };
    bits from = open(unit, count);
    const bool isFirst = takeBits(&from, 1);
    takeBits(&from, 1);
    takeNumber(&from);
    if (!isFirst) {
        const bool isDependent = set->hasDependents && takeBits(&from, 1);
        for (uint64_t i = 1; i < blocks; i *= 2) takeBits(&from, 1);
        if (isDependent) return !from.isShort;
    }
    takeBits(&from, set->reserve);
    return takeNumber(&from) == INTRA && !from.isShort;
}
#endif
