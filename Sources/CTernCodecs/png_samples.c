#include "png_samples.h"

#if defined(__linux__)
#include <endian.h>
#include <string.h>

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGB_ALPHA = 6 };

unsigned tern_png_sample_channels(const tern_png_samples *samples) {
    return ((samples->color & 3) == 2 ? 3 : 1) + (samples->color & 4 ? 1 : 0);
}

uint64_t tern_png_row_bytes(const tern_png_samples *samples) {
    return ((uint64_t)samples->width * samples->depth * tern_png_sample_channels(samples) + 7) / 8;
}

void tern_png_prepare(tern_png_samples *samples) {
    const unsigned most = samples->depth < 8 ? (1u << samples->depth) - 1 : 255;
    for (unsigned i = 0; i < 256; i++) {
        uint8_t *color = samples->colors[i];
        if (samples->color == GREY && samples->depth <= 8) {
            memset(color, (int)((i & most) * 255 / most), 3);
            color[3] = samples->hasKey && (samples->key[0] & most) == (i & most) ? 0 : 255;
        } else if (samples->color == PALETTE && i >= samples->colorCount) {
            memcpy(color, (uint8_t[]){0, 0, 0, 255}, 4);
        }
    }
}

static inline uint16_t sample(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

/// Rounds 16 bits to 8, exactly.
static inline uint8_t level(const uint8_t *at) { return (uint8_t)((sample(at) * 255u + 32895) >> 16); }

static void lookUp(const tern_png_samples *samples, const uint8_t *row, uint8_t *pixels) {
    const unsigned depth = samples->depth, mask = (1u << depth) - 1;
    if (depth == 8) {
        for (uint32_t x = 0; x < samples->width; x++) memcpy(pixels + (size_t)x * 4, samples->colors[row[x]], 4);
        return;
    }
    for (uint32_t x = 0, shift = 8; x < samples->width; x++) {
        shift -= depth;
        memcpy(pixels + (size_t)x * 4, samples->colors[*row >> shift & mask], 4);
        if (shift > 0) continue;
        shift = 8;
        row++;
    }
}

static void convertColors(const tern_png_samples *samples, const uint8_t *row, uint8_t *pixels) {
    const uint32_t opaque = 0xFF000000;
    const uint32_t key = samples->hasKey ? (samples->key[0] & 255) | (samples->key[1] & 255u) << 8
                                               | (samples->key[2] & 255u) << 16
                                         : UINT32_MAX;
    for (uint32_t x = 0; x < samples->width; x++, row += 3, pixels += 4) {
        uint32_t pixel;
        memcpy(&pixel, row, 4);
        pixel = le32toh(pixel) & ~opaque;
        pixel = htole32(pixel == key ? pixel : pixel | opaque);
        memcpy(pixels, &pixel, 4);
    }
}

/// Converts samples of 16 bits, and of greys with alpha.
static void convertOthers(const tern_png_samples *samples, const uint8_t *row, uint8_t *pixels) {
    const unsigned channels = tern_png_sample_channels(samples), size = samples->depth / 8;
    const unsigned colors = channels >= 3 ? 3 : 1;
    for (uint32_t x = 0; x < samples->width; x++, row += channels * size, pixels += 4) {
        bool isKey = samples->hasKey;
        for (unsigned c = 0; c < 3; c++) {
            const uint8_t *at = row + (colors == 3 ? c : 0) * size;
            pixels[c] = size == 2 ? level(at) : *at;
            if (c < colors) isKey = isKey && sample(at) == samples->key[c];
        }
        const uint8_t *alpha = row + colors * size;
        pixels[3] = channels == colors ? (isKey ? 0 : 255) : size == 2 ? level(alpha) : *alpha;
    }
}

void tern_png_convert(const tern_png_samples *samples, const uint8_t *row, uint8_t *pixels) {
    if (samples->color == PALETTE || (samples->color == GREY && samples->depth <= 8)) lookUp(samples, row, pixels);
    else if (samples->depth == 8 && samples->color == RGB) convertColors(samples, row, pixels);
    else if (samples->depth == 8 && samples->color == RGB_ALPHA) memcpy(pixels, row, (size_t)samples->width * 4);
    else convertOthers(samples, row, pixels);
}
#endif
