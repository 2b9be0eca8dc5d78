#include "CTernCodecs.h"
#include "deep.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>

void tern_prefer_large_pages(uint8_t *pixels, size_t count) {
    const uintptr_t page = 2 << 20, start = ((uintptr_t)pixels + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)pixels + count) / page * page;
    // Without such pages, the call fails and changes nothing.
    if (count >= 2 * page && end > start) madvise((void *)start, end - start, MADV_HUGEPAGE);
}
#else
void tern_prefer_large_pages(uint8_t *pixels, size_t count) {
    (void)pixels;
    (void)count;
}
#endif

bool tern_canvas_fits(tern_canvas canvas, uint32_t width, uint32_t height, char *error) {
    if (canvas.width == width && canvas.height == height && canvas.stride >= (size_t)width * 4) return true;
    snprintf(error, 160, "a picture of %u by %u pixels where the header says %u by %u", width, height, canvas.width,
             canvas.height);
    return false;
}

static uint32_t number(const uint8_t *at, int size, bool big) {
    uint32_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint32_t)at[i] << 8 * (big ? size - 1 - i : i);
    return value;
}

int tern_exif_orientation(const uint8_t *bytes, size_t count) {
    if (count > 6 && !memcmp(bytes, "Exif\0", 6)) { bytes += 6; count -= 6; }
    if (count < 8) return 1;
    bool big = bytes[0] == 'M' && bytes[1] == 'M';
    if (!big && (bytes[0] != 'I' || bytes[1] != 'I')) return 1;
    size_t directory = number(bytes + 4, 4, big);
    if (directory < 8 || directory > count || count - directory < 2) return 1;
    size_t entries = number(bytes + directory, 2, big);
    for (size_t entry = 0; entry < entries; entry++) {
        size_t at = directory + 2 + entry * 12;
        if (at + 12 > count) return 1;
        if (number(bytes + at, 2, big) != 0x0112) continue;
        uint32_t value = number(bytes + at + 8, 2, big);
        return number(bytes + at + 2, 2, big) == 3 && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

void tern_orient(
    const uint8_t *source, size_t sourceStride, size_t pixel, uint32_t width, uint32_t height, int orientation,
    uint8_t *target, size_t targetStride) {
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t *row = source + sourceStride * y;
        for (uint32_t x = 0; x < width; x++) {
            uint32_t toX = x, toY = y;
            switch (orientation) {
            case 2: toX = width - 1 - x; break;
            case 3: toX = width - 1 - x; toY = height - 1 - y; break;
            case 4: toY = height - 1 - y; break;
            case 5: toX = y; toY = x; break;
            case 6: toX = height - 1 - y; toY = x; break;
            case 7: toX = height - 1 - y; toY = width - 1 - x; break;
            case 8: toX = y; toY = width - 1 - x; break;
            default: break;
            }
            tern_copy_pixel(target + targetStride * toY + toX * pixel, row + x * pixel, pixel);
        }
    }
}

void tern_premultiply(uint8_t *pixels, size_t stride, uint32_t width, uint32_t height) {
    for (uint32_t y = 0; y < height; y++) {
        uint8_t *pixel = pixels + stride * y;
        for (uint32_t x = 0; x < width; x++, pixel += 4) {
            unsigned alpha = pixel[3];
            if (alpha == 255) continue;
            // Exact for round(c·a/255) over all 65,536 pairs.
            for (int i = 0; i < 3; i++) {
                unsigned product = pixel[i] * alpha + 128;
                pixel[i] = (uint8_t)((product + (product >> 8)) >> 8);
            }
        }
    }
}

bool tern_make_opaque(uint8_t *pixels, size_t stride, uint32_t width, uint32_t height) {
    unsigned all = 255;
    for (uint32_t y = 0; y < height; y++) {
        uint8_t *alpha = pixels + stride * y + 3;
        for (uint32_t x = 0; x < width; x++, alpha += 4) {
            all &= *alpha;
            *alpha = 255;
        }
    }
    return all != 255;
}

void tern_unpremultiply(const uint8_t *source, uint8_t *target, size_t pixels) {
    for (size_t i = 0; i < pixels; i++, source += 4, target += 4) {
        unsigned alpha = source[3];
        for (int c = 0; c < 3; c++) {
            unsigned value = alpha == 0 ? 0 : (source[c] * 255 + alpha / 2) / alpha;
            target[c] = value > 255 ? 255 : (uint8_t)value;
        }
        target[3] = (uint8_t)alpha;
    }
}

void tern_codec_free(void *bytes) { free(bytes); }
