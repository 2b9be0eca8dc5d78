// Conversions and copies of single samples and pixels.
#ifndef TERN_DEEP_H
#define TERN_DEEP_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// Returns the number of a half float. Infinities, and values that are not numbers, become 65504 with their sign.
static inline float tern_from_half(uint16_t half) {
    uint32_t bits = (uint32_t)(half & 0x7FFF) << 13;
    if ((half & 0x7C00) == 0x7C00) bits = 0x7BFFu << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    // Moves the exponent, which also normalizes subnormal numbers.
    value *= 0x1p112f;
    return half & 0x8000 ? -value : value;
}

/// Returns the nearest half float, at most 65504; 0 for a value that is not a number.
static inline uint16_t tern_to_half(float value) {
    const uint16_t sign = value < 0 ? 0x8000 : 0;
    const float size = fabsf(value);
    if (!(size > 0)) return 0;
    if (size >= 65504) return sign | 0x7BFF;
    if (size < 0x1p-14f) return sign | (uint16_t)lrintf(size * 0x1p24f);
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    bits += 0x0FFF + (bits >> 13 & 1);
    return sign | (uint16_t)((bits >> 13) - (112 << 10));
}

/// Copies a pixel of four or eight bytes.
static inline void tern_copy_pixel(uint8_t *target, const uint8_t *source, size_t pixel) {
    if (pixel == 8) memcpy(target, source, 8);
    else memcpy(target, source, 4);
}

/// Returns a number from 0 to 1, also of what is not a number.
static inline float tern_unit(float value) { return value > 0 ? value < 1 ? value : 1 : 0; }

#endif
