// Reads the size from a sequence parameter set of HEVC (ITU-T H.265), in which the HEVC decoder believes.
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

bool tern_heif_sequence(const uint8_t *unit, size_t count, tern_heif_size *into) {
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
    takeNumber(&from);
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
    return !from.isShort && layers < 7 && into->chroma <= 3;
}
#endif
