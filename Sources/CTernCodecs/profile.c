// Writes the ICC profiles of colours that a file states in another way, for files and programs that know only profiles
// (ICC.1:2022, version 4).
#include "profile.h"

#if defined(__linux__)
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put16(uint8_t *at, unsigned value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value) {
    put16(at, value >> 16);
    put16(at + 2, value & 0xFFFF);
}

static void putFixed(uint8_t *at, double value) { put32(at, (uint32_t)(int32_t)lrint(value * 65536)); }

/// Writes a text in one language (§10.15) and returns its size.
static size_t putText(uint8_t *at, const char *text) {
    const size_t count = strlen(text);
    memcpy(at, "mluc", 4);
    put32(at + 8, 1);
    put32(at + 12, 12);
    memcpy(at + 16, "enUS", 4);
    put32(at + 20, (uint32_t)count * 2);
    put32(at + 24, 28);
    for (size_t i = 0; i < count; i++) at[29 + i * 2] = (uint8_t)text[i];
    return 28 + count * 2;
}

size_t tern_profile_curve(uint8_t at[32], const double numbers[5]) {
    memset(at, 0, 32);
    memcpy(at, "para", 4);
    put16(at + 8, 3);
    for (int i = 0; i < 5; i++) putFixed(at + 12 + i * 4, numbers[i]);
    return 32;
}

uint8_t *tern_profile_write(
    const char *name, const double colorants[3][3], const double adapted[3][3], const uint8_t *curve, size_t curveSize,
    size_t *count) {
    enum { TAGS = 10, START = 132 + TAGS * 12, TEXT = 96, POINT = 20, MATRIX = 44 };
    static const char *const names[TAGS] = {
        "desc", "cprt", "wtpt", "chad", "rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC"};
    static const double d50[3] = {0.9642, 1, 0.8249};
    if (strlen(name) > 30 || curveSize > 8 << 20) return NULL;
    uint8_t *made = calloc(1, START + TEXT * 2 + POINT * 4 + MATRIX + curveSize + 4);
    if (!made) return NULL;
    put32(made + 8, 0x04300000);
    memcpy(made + 12, "mntrRGB XYZ ", 12);
    put16(made + 24, 2024);
    put16(made + 26, 1);
    put16(made + 28, 1);
    memcpy(made + 36, "acsp", 4);
    for (int i = 0; i < 3; i++) putFixed(made + 68 + i * 4, d50[i]);
    put32(made + 128, TAGS);
    size_t at = START;
    for (int tag = 0; tag < TAGS; tag++) {
        uint8_t *entry = made + 132 + tag * 12;
        memcpy(entry, names[tag], 4);
        // The channels share their curve.
        if (tag > 7) {
            memcpy(entry + 4, entry - 8, 8);
            continue;
        }
        size_t size = POINT;
        if (tag < 2) {
            size = putText(made + at, tag == 0 ? name : "Public domain");
        } else if (tag == 3) {
            size = MATRIX;
            memcpy(made + at, "sf32", 4);
            for (int i = 0; i < 9; i++) putFixed(made + at + 8 + i * 4, adapted[i / 3][i % 3]);
        } else if (tag == 7) {
            size = curveSize;
            memcpy(made + at, curve, curveSize);
        } else {
            memcpy(made + at, "XYZ ", 4);
            for (int i = 0; i < 3; i++)
                putFixed(made + at + 8 + i * 4, tag == 2 ? d50[i] : colorants[i][tag - 4]);
        }
        put32(entry + 4, (uint32_t)at);
        put32(entry + 8, (uint32_t)size);
        at += (size + 3) / 4 * 4;
    }
    put32(made, (uint32_t)at);
    *count = at;
    return made;
}
#endif
