// Samples of 16 bits and half floats, in pixels of eight bytes, whose bytes are in the order of the machine.
#include "CTernCodecs.h"
#include "deep.h"

static inline uint16_t word(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline void put(uint8_t *at, uint16_t value) { memcpy(at, &value, sizeof value); }

static inline float load(const uint8_t *source, tern_samples samples, size_t index) {
    switch (samples) {
    case TERN_SAMPLES_BYTES: return source[index] / 255.0f;
    case TERN_SAMPLES_WORDS: return word(source + index * 2) / 65535.0f;
    default: return tern_from_half(word(source + index * 2));
    }
}

void tern_load_samples(const uint8_t *source, tern_samples samples, float *target, size_t count) {
    for (size_t i = 0; i < count; i++) target[i] = load(source, samples, i);
}

void tern_convert_samples(
    const uint8_t *source, tern_samples from, uint8_t *target, tern_samples to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (from == TERN_SAMPLES_BYTES && to == TERN_SAMPLES_WORDS) {
            put(target + i * 2, (uint16_t)(source[i] * 257));
            continue;
        }
        const float value = load(source, from, i);
        switch (to) {
        case TERN_SAMPLES_BYTES: target[i] = (uint8_t)(tern_unit(value) * 255 + 0.5f); break;
        case TERN_SAMPLES_WORDS: put(target + i * 2, (uint16_t)(tern_unit(value) * 65535 + 0.5f)); break;
        default: put(target + i * 2, tern_to_half(value)); break;
        }
    }
}

void tern_premultiply_deep(uint8_t *pixels, tern_samples samples, size_t count) {
    for (size_t i = 0; i < count; i++, pixels += 8) {
        const uint16_t alpha = word(pixels + 6);
        if (alpha == (samples == TERN_SAMPLES_WORDS ? UINT16_MAX : 0x3C00)) continue;
        for (int c = 0; c < 6; c += 2) {
            const uint16_t value = word(pixels + c);
            if (samples == TERN_SAMPLES_WORDS) put(pixels + c, (uint16_t)(((uint32_t)value * alpha + 32767) / 65535));
            else put(pixels + c, tern_to_half(tern_from_half(value) * tern_from_half(alpha)));
        }
    }
}

void tern_unpremultiply_deep(uint8_t *pixels, tern_samples samples, size_t count) {
    for (size_t i = 0; i < count; i++, pixels += 8) {
        const uint16_t alpha = word(pixels + 6);
        if (alpha == (samples == TERN_SAMPLES_WORDS ? UINT16_MAX : 0x3C00)) continue;
        for (int c = 0; c < 6; c += 2) {
            const uint16_t value = word(pixels + c);
            if (samples == TERN_SAMPLES_WORDS) {
                const uint64_t straight = alpha ? ((uint64_t)value * 65535 + alpha / 2) / alpha : 0;
                put(pixels + c, straight < 65535 ? (uint16_t)straight : 65535);
            } else {
                const float part = tern_from_half(alpha);
                put(pixels + c, part > 0 ? tern_to_half(tern_from_half(value) / part) : 0);
            }
        }
    }
}

bool tern_is_opaque(const uint8_t *pixels, tern_samples samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        switch (samples) {
        case TERN_SAMPLES_BYTES: if (pixels[i * 4 + 3] != 255) return false; break;
        case TERN_SAMPLES_WORDS: if (word(pixels + i * 8 + 6) != UINT16_MAX) return false; break;
        default: if (word(pixels + i * 8 + 6) != 0x3C00) return false; break;
        }
    }
    return true;
}
