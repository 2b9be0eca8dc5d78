// A filter's result depends on the pixel before it, so that the time of a row is that of a chain of additions. The
// bytes of a pixel are processed together, and the chains of two rows at once. The compiler translates the vectors to
// SSE2 or NEON.
#include "png_filter.h"

#if defined(__linux__)
#include <string.h>

typedef int16_t lanes __attribute__((vector_size(16)));
typedef uint8_t octets __attribute__((vector_size(8)));

#if defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_min)
#define LEAST(a, b) __builtin_elementwise_min(a, b)
#define MOST(a, b) __builtin_elementwise_max(a, b)
#endif
#endif
#if !defined(LEAST)
#define LEAST(a, b) choose((a) < (b), a, b)
#define MOST(a, b) choose((a) < (b), b, a)
#endif

/// Returns the lanes of one value where the mask is set, and of the other elsewhere.
static inline lanes choose(lanes mask, lanes one, lanes other) { return (mask & one) | (~mask & other); }

static inline lanes load(const uint8_t *at, size_t count) {
    octets bytes = {0};
    memcpy(&bytes, at, count);
    return __builtin_convertvector(bytes, lanes);
}

static inline void store(uint8_t *at, lanes value, size_t count) {
    octets bytes = __builtin_convertvector(value, octets);
    memcpy(at, &bytes, count);
}

/// Returns which of the pixels to the left, above, and in the corner between them is nearest to left + above − corner, of
/// equally near ones the first (§9.4). The chain from the left pixel is shorter than with the differences of the standard.
static inline lanes nearest(lanes left, lanes above, lanes corner) {
    const lanes bound = corner * 3 - above - left, low = LEAST(left, above), high = MOST(left, above);
    return choose(bound > low, choose(high > bound, corner, low), high);
}

/// Reverses a filter for pixels of `step` bytes, which are read and written in groups of `wide` bytes.
static inline __attribute__((always_inline)) void unfilter(
    int filter, const uint8_t *from, const uint8_t *above, uint8_t *row, size_t count, size_t step, size_t wide) {
    lanes left = {0}, corner = {0};
    for (size_t i = 0; i + step <= count; i += step) {
        lanes value = load(from + i, wide);
        if (filter == TERN_PNG_SUB) value += left;
        if (filter >= TERN_PNG_AVERAGE) {
            const lanes up = load(above + i, wide);
            value += filter == TERN_PNG_AVERAGE ? (left + up) >> 1 : nearest(left, up, corner);
            corner = up;
        }
        left = value & 255;
        store(row + i, left, wide);
    }
}

static void add(const uint8_t *from, const uint8_t *above, uint8_t *row, size_t count) {
    for (size_t i = 0; i < count; i++) row[i] = (uint8_t)(from[i] + above[i]);
}

#define UNFILTER(filter)                                                                                             \
    switch (step) {                                                                                                  \
    case 1: unfilter(filter, from, above, row, count, 1, 1); break;                                                  \
    case 2: unfilter(filter, from, above, row, count, 2, 2); break;                                                  \
    case 3: unfilter(filter, from, above, row, count, 3, 4); break;                                                  \
    case 4: unfilter(filter, from, above, row, count, 4, 4); break;                                                  \
    case 6: unfilter(filter, from, above, row, count, 6, 8); break;                                                  \
    default: unfilter(filter, from, above, row, count, 8, 8);                                                        \
    }

void tern_png_unfilter(
    int filter, const uint8_t *from, const uint8_t *above, uint8_t *row, size_t count, unsigned step) {
    switch (filter) {
    case TERN_PNG_SUB: UNFILTER(TERN_PNG_SUB) break;
    case TERN_PNG_UP: add(from, above, row, count); break;
    case TERN_PNG_AVERAGE: UNFILTER(TERN_PNG_AVERAGE) break;
    case TERN_PNG_PAETH: UNFILTER(TERN_PNG_PAETH) break;
    default: memcpy(row, from, count);
    }
}

/// Keeps the first row in the lower four lanes, and the second one, a pixel behind it, in the upper ones.
static inline __attribute__((always_inline)) void unfilterTwo(
    const uint8_t *from, const uint8_t *fromSecond, const uint8_t *above, uint8_t *row, uint8_t *second, size_t count,
    size_t step) {
    lanes both = {0}, corner = {0}, value = load(from, 4), up = load(above, 4);
    for (size_t i = 0;; i += step) {
        both = (value + nearest(both, up, corner)) & 255;
        corner = up;
        const octets bytes = __builtin_convertvector(both, octets);
        const uint64_t pixels = (uint64_t)bytes;
        const uint32_t upper = (uint32_t)(pixels >> 32), lower = (uint32_t)pixels;
        if (i > 0) memcpy(second + i - step, &upper, 4);
        if (i == count) return;
        memcpy(row + i, &lower, 4);
        // The value behind the end of the row is not used.
        const lanes next = i + step < count ? load(from + i + step, 4) : (lanes){0};
        value = __builtin_shufflevector(next, load(fromSecond + i, 4), 0, 1, 2, 3, 8, 9, 10, 11);
        up = __builtin_shufflevector(load(above + i + step, 4), both, 0, 1, 2, 3, 8, 9, 10, 11);
    }
}

void tern_png_unfilter_two(
    const uint8_t *from, const uint8_t *fromSecond, const uint8_t *above, uint8_t *row, uint8_t *second, size_t count,
    unsigned step) {
    if (step == 3) unfilterTwo(from, fromSecond, above, row, second, count, 3);
    else unfilterTwo(from, fromSecond, above, row, second, count, 4);
}
#endif
