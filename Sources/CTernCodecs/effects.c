#include "CTernEffects.h"
#include "deep.h"
#include "srgb.h"
#include <math.h>
#include <string.h>

/// round(x/255) for x up to 65,535.
static inline uint32_t by255(uint32_t x) { return (x + 128 + ((x + 128) >> 8)) >> 8; }

/// Returns round(65536·c·a/65025), a premultiplied channel as a fraction of 65,536.
static uint32_t part(uint32_t channel, uint32_t alpha) {
    return (uint32_t)(((uint64_t)channel * alpha * 65536 + 32512) / 65025);
}

void tern_tint(const uint8_t *source, uint8_t *target, size_t pixels, tern_color color) {
    // The fractions of a pixel and of a colour never sum to more than 65,536, so a colour never exceeds its alpha.
    const uint32_t kept = 65536 - part(255, color.alpha);
    const uint32_t red = part(color.red, color.alpha), green = part(color.green, color.alpha);
    const uint32_t blue = part(color.blue, color.alpha);
    for (size_t i = 0; i < pixels * 4; i += 4) {
        const uint32_t alpha = source[i + 3];
        target[i] = (uint8_t)((source[i] * kept + alpha * red + 32768) >> 16);
        target[i + 1] = (uint8_t)((source[i + 1] * kept + alpha * green + 32768) >> 16);
        target[i + 2] = (uint8_t)((source[i + 2] * kept + alpha * blue + 32768) >> 16);
        target[i + 3] = (uint8_t)alpha;
    }
}

void tern_luma(const uint8_t *source, uint8_t *target, size_t pixels, bool isP3) {
    // 0.2126, 0.7152 and 0.0722 (ITU-R BT.709), or 0.2290, 0.6917 and 0.0793, as fractions of 65,536, which is their sum.
    const uint32_t red = isP3 ? 15006 : 13933, green = isP3 ? 45334 : 46871, blue = isP3 ? 5196 : 4732;
    for (size_t i = 0; i < pixels * 4; i += 4) {
        const uint32_t luma = (source[i] * red + source[i + 1] * green + source[i + 2] * blue + 32768u) >> 16;
        target[i] = (uint8_t)luma;
        target[i + 1] = (uint8_t)luma;
        target[i + 2] = (uint8_t)luma;
        target[i + 3] = source[i + 3];
    }
}

tern_color tern_color_in_p3(tern_color color) {
    const uint8_t levels[3] = {color.red, color.green, color.blue};
    double light[3];
    uint8_t made[3];
    for (int i = 0; i < 3; i++) light[i] = tern_srgb_light(levels[i] / 255.0);
    for (int i = 0; i < 3; i++) {
        const float *mix = tern_srgb_to_p3[i];
        const double sum = mix[0] * light[0] + mix[1] * light[1] + mix[2] * light[2];
        made[i] = (uint8_t)(fmin(tern_srgb_level(sum), 1) * 255 + 0.5);
    }
    return (tern_color){made[0], made[1], made[2], color.alpha};
}

void tern_cover(const uint8_t *source, uint8_t *target, size_t pixels, tern_color color) {
    const uint32_t kept = 65536 - part(255, color.alpha), half = 32768;
    const uint32_t red = part(color.red, color.alpha) * 255 + half, green = part(color.green, color.alpha) * 255 + half;
    const uint32_t blue = part(color.blue, color.alpha) * 255 + half, alpha = part(255, color.alpha) * 255 + half;
    for (size_t i = 0; i < pixels * 4; i += 4) {
        target[i] = (uint8_t)((source[i] * kept + red) >> 16);
        target[i + 1] = (uint8_t)((source[i + 1] * kept + green) >> 16);
        target[i + 2] = (uint8_t)((source[i + 2] * kept + blue) >> 16);
        target[i + 3] = (uint8_t)((source[i + 3] * kept + alpha) >> 16);
    }
}

void tern_over(const uint8_t *source, const uint8_t *above, uint8_t *target, size_t pixels, uint32_t opacity) {
    for (size_t i = 0; i < pixels * 4; i += 4) {
        const uint32_t left = 255 - ((above[i + 3] * opacity + 32768) >> 16);
        for (size_t c = 0; c < 4; c++)
            target[i + c] = (uint8_t)(((above[i + c] * opacity + 32768) >> 16) + by255(source[i + c] * left));
    }
}

void tern_flip_rows(
    tern_picture source, size_t pixel, bool across, bool down, uint8_t *target, size_t targetStride,
    uint32_t firstRow, uint32_t rows) {
    for (uint32_t y = firstRow; y < firstRow + rows && y < source.height; y++) {
        const uint8_t *from = source.pixels + source.stride * (down ? source.height - 1 - y : y);
        uint8_t *to = target + targetStride * y;
        if (!across) {
            memcpy(to, from, source.width * pixel);
            continue;
        }
        const uint8_t *last = from + (source.width - 1) * pixel;
        for (size_t x = 0; x < source.width; x++) tern_copy_pixel(to + x * pixel, last - x * pixel, pixel);
    }
}

void tern_turn_rows(
    tern_picture source, size_t pixel, bool clockwise, uint8_t *target, size_t targetStride, uint32_t firstRow,
    uint32_t rows) {
    // Squares of a size that fits in the first-level cache on both sides, because a row of one picture is a column of
    // the other.
    enum { side = 16 };
    uint32_t end = firstRow + rows < source.width ? firstRow + rows : source.width;
    for (uint32_t top = firstRow; top < end; top += side)
        for (uint32_t left = 0; left < source.height; left += side)
            for (uint32_t y = top; y < top + side && y < end; y++) {
                size_t column = clockwise ? y : source.width - 1 - y;
                uint8_t *to = target + targetStride * y;
                for (uint32_t x = left; x < left + side && x < source.height; x++) {
                    size_t row = clockwise ? source.height - 1 - x : x;
                    tern_copy_pixel(to + x * pixel, source.pixels + source.stride * row + column * pixel, pixel);
                }
            }
}
