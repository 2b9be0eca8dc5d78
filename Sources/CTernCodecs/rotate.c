#include "CTernEffects.h"
#include <math.h>
#include <string.h>

typedef float pixel4 __attribute__((vector_size(16)));
typedef uint8_t bytes4 __attribute__((vector_size(4)));

static inline pixel4 loadPixel(const uint8_t *at) {
    bytes4 bytes;
    memcpy(&bytes, at, 4);
    return __builtin_convertvector(bytes, pixel4);
}

/// Computes Catmull-Rom's four weights for a place between the second and the third of four pixels. They sum to 1.
static inline void weights(float t, float out[4]) {
    out[0] = t * (-0.5f + t * (1 - 0.5f * t));
    out[1] = 1 + t * t * (1.5f * t - 2.5f);
    out[2] = t * (0.5f + t * (2 - 1.5f * t));
    out[3] = t * t * (0.5f * t - 0.5f);
}

static inline int64_t within(int64_t at, int64_t count) { return at < 0 ? 0 : at >= count ? count - 1 : at; }

/// Returns the picture's colour at a place. Beyond the picture, its edge pixels are continued.
static pixel4 sample(const tern_picture *source, double x, double y) {
    double left = floor(x - 0.5), top = floor(y - 0.5);
    float across[4], down[4];
    weights((float)(x - 0.5 - left), across);
    weights((float)(y - 0.5 - top), down);
    size_t columns[4];
    for (int i = 0; i < 4; i++) columns[i] = (size_t)within((int64_t)left - 1 + i, source->width) * 4;
    pixel4 sum = {0};
    for (int j = 0; j < 4; j++) {
        const uint8_t *row = source->pixels + source->stride * (size_t)within((int64_t)top - 1 + j, source->height);
        pixel4 line = loadPixel(row + columns[0]) * across[0] + loadPixel(row + columns[1]) * across[1]
            + loadPixel(row + columns[2]) * across[2] + loadPixel(row + columns[3]) * across[3];
        sum += line * down[j];
    }
    // The filter overshoots at edges. The result is clamped to the values that a premultiplied pixel can have.
    sum[3] = sum[3] < 0 ? 0 : sum[3] > 255 ? 255 : sum[3];
    for (int c = 0; c < 3; c++) sum[c] = sum[c] < 0 ? 0 : sum[c] > sum[3] ? sum[3] : sum[c];
    return sum;
}

/// Returns the part of a pixel around `at` that is between 0 and `length`.
static inline double covered(double at, double length) {
    double inside = fmin(at + 0.5, length) - fmax(at - 0.5, 0);
    return inside < 0 ? 0 : inside;
}

void tern_rotate_rows(
    tern_picture source, double cosine, double sine, tern_color background, uint8_t *target, size_t targetStride,
    uint32_t targetWidth, uint32_t targetHeight, uint32_t firstRow, uint32_t rows) {
    const float alpha = background.alpha / 255.0f;
    const pixel4 under = {background.red * alpha, background.green * alpha, background.blue * alpha, background.alpha};
    for (uint32_t y = firstRow; y < firstRow + rows && y < targetHeight; y++) {
        uint8_t *to = target + targetStride * y;
        const double down = y + 0.5 - targetHeight / 2.0;
        for (uint32_t x = 0; x < targetWidth; x++, to += 4) {
            const double along = x + 0.5 - targetWidth / 2.0;
            const double fromX = along * cosine + down * sine + source.width / 2.0;
            const double fromY = down * cosine - along * sine + source.height / 2.0;
            const float cover = (float)(covered(fromX, source.width) * covered(fromY, source.height));
            pixel4 made = under;
            if (cover > 0) {
                made = sample(&source, fromX, fromY) * cover;
                made += under * (1 - made[3] / 255.0f);
            }
            for (int c = 0; c < 4; c++) to[c] = (uint8_t)(made[c] + 0.5f);
        }
    }
}
