// Lanczos3 in two passes: first down whole rows (contiguous, without gathering), then along the one row that results.
// The weights are 16-bit fixed point, scaled as far as the largest weight allows. The sum of each window is exact.
#include "resize_side.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct {
    uint32_t *starts;
    int16_t *weights;
    uint32_t taps;
    int shift;
} filter;

struct tern_resize {
    uint32_t width, height, targetWidth, targetHeight;
    filter across, down;
    bool wide;
    // Rows that arrive one by one. The window has one place for each row that a target row is made of, and a row's
    // place is its number modulo the number of places. The members below count the rows that have arrived and the
    // target rows that were made.
    uint8_t *window;
    uint32_t taken, made;
    // The rows that a target row is made of, and the row that results from them before its width is reduced.
    const uint8_t **lines;
    uint8_t *line;
};

static uint64_t commonDivisor(uint64_t one, uint64_t other) {
    while (other) {
        uint64_t rest = one % other;
        one = other;
        other = rest;
    }
    return one;
}

/// Returns the number of bits by which weights are shifted: the most that the largest weight allows. Within the picture
/// no weight exceeds 1 / stretch by more than one hundredth, which fits in 16 bits. Near the edges, where windows are
/// cut off, some weights do.
static int fittingShift(const tern_side *side, double *row) {
    double largest = 1 / side->stretch;
    uint32_t start = 0;
    for (uint32_t i = 0; i < 8 && i < side->target; i++) {
        tern_weigh(side, i < 4 ? i : side->target - (i - 3), &start, row);
        for (uint32_t t = 0; t < side->taps; t++) if (fabs(row[t]) > largest) largest = fabs(row[t]);
    }
    int shift = 0;
    while (shift < 21 && largest * (1 << (shift + 1)) < 32000) shift++;
    return shift;
}

static bool makeFilter(filter *made, uint32_t size, uint64_t eighths, uint32_t target, uint32_t step) {
    const tern_side side = tern_make_side(size, eighths, target, step);
    const uint32_t taps = made->taps = side.taps;
    made->starts = calloc(target, sizeof *made->starts);
    made->weights = calloc((size_t)target * taps, sizeof *made->weights);
    double *exact = malloc(taps * sizeof *exact);
    if (!made->starts || !made->weights || !exact) { free(exact); return false; }
    made->shift = fittingShift(&side, exact);
    // Away from the edges, the weights repeat after `period` target pixels, which are `stride` source pixels.
    const uint64_t divisor = commonDivisor(eighths, (uint64_t)target * 8);
    const uint64_t period = (uint64_t)target * 8 / divisor, stride = eighths / divisor;
    const uint32_t whole = eighths % 8 ? size - 1 : size;
    for (uint32_t i = 0; i < target; i++) {
        int16_t *row = made->weights + (size_t)i * taps;
        if (i >= period) {
            const double low = floor((i + 0.5) * side.scale - 3 * side.stretch + 0.5);
            const uint64_t start = made->starts[i - period] + stride;
            if (low >= stride && (uint64_t)low == start && start + taps <= whole) {
                made->starts[i] = (uint32_t)start;
                memcpy(row, row - period * taps, taps * sizeof *row);
                continue;
            }
        }
        tern_weigh(&side, i, &made->starts[i], exact);
        int32_t left = 1 << made->shift;
        uint32_t most = 0;
        for (uint32_t t = 0; t < taps; t++) {
            row[t] = (int16_t)lrint(exact[t] * (1 << made->shift));
            left -= row[t];
            if (row[t] > row[most]) most = t;
        }
        // With millions of taps, each weight is rounded to 0, and no single one can hold the rest, which is spread over all of them.
        if (row[most] + left > INT16_MAX) {
            for (uint64_t t = 0; t < taps; t++)
                row[t] = (int16_t)(row[t] + (int32_t)(left * (t + 1) / taps - left * t / taps));
        } else {
            row[most] = (int16_t)(row[most] + left);
        }
    }
    free(exact);
    return true;
}

tern_extent tern_extent_whole(uint32_t width, uint32_t height) {
    return (tern_extent){width, height, (uint64_t)width * 8, (uint64_t)height * 8};
}

static size_t placeStride(uint32_t width) { return ((size_t)width * 4 + 31) / 32 * 32; }

uint64_t tern_resize_memory(tern_extent source, uint32_t targetWidth, uint32_t targetHeight, bool inRows) {
    const tern_side across = tern_make_side(source.width, source.eighthsAcross, targetWidth, 4);
    const tern_side down = tern_make_side(source.height, source.eighthsDown, targetHeight, 2);
    // Computed in floating point, which does not overflow: 4 bytes for each start, 2 for each weight, and 8 for each
    // weight of the current row.
    double bytes = 4.0 * targetWidth + 2.0 * targetWidth * across.taps + 8.0 * across.taps
        + 4.0 * targetHeight + 2.0 * targetHeight * down.taps + 16.0 * down.taps + 4.0 * source.width;
    if (inRows) bytes += (double)placeStride(source.width) * down.taps;
    return bytes < 0x1p62 ? (uint64_t)bytes : (uint64_t)1 << 62;
}

tern_resize *tern_resize_open(tern_extent source, uint32_t targetWidth, uint32_t targetHeight) {
    tern_resize *resize = calloc(1, sizeof *resize);
    if (!resize) return NULL;
    resize->width = source.width;
    resize->height = source.height;
    resize->targetWidth = targetWidth;
    resize->targetHeight = targetHeight;
    bool filters = makeFilter(&resize->across, source.width, source.eighthsAcross, targetWidth, 4)
        && makeFilter(&resize->down, source.height, source.eighthsDown, targetHeight, 2);
    if (filters) {
        resize->lines = malloc(resize->down.taps * sizeof *resize->lines);
        resize->line = malloc((size_t)source.width * 4);
    }
    if (!resize->lines || !resize->line) {
        tern_resize_close(resize);
        return NULL;
    }
#if defined(__x86_64__)
    resize->wide = __builtin_cpu_supports("avx2");
#endif
    return resize;
}

void tern_resize_close(tern_resize *resize) {
    if (!resize) return;
    free(resize->across.starts);
    free(resize->across.weights);
    free(resize->down.starts);
    free(resize->down.weights);
    free(resize->window);
    free(resize->lines);
    free(resize->line);
    free(resize);
}

static inline uint8_t level(int32_t sum, int shift) {
    int32_t value = sum >> shift;
    return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

typedef int32_t lanes __attribute__((vector_size(32)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));

/// Processes eight bytes at a time. The compiler translates it to SSE2 or NEON.
static void downPlain(
    const uint8_t *const *lines, uint32_t rows, const int16_t *weights, int shift, size_t from, size_t count,
    uint8_t *line) {
    for (size_t x = from; x < count; x += 8) {
        size_t width = count - x < 8 ? count - x : 8;
        lanes sum = {0};
        for (uint32_t t = 0; t < rows; t++) {
            bytes8 part = {0};
            memcpy(&part, lines[t] + x, width);
            sum += __builtin_convertvector(part, lanes) * (int32_t)weights[t];
        }
        for (size_t i = 0; i < width; i++) line[x + i] = level(sum[i] + (1 << (shift - 1)), shift);
    }
}

static void acrossPlain(const tern_resize *resize, const uint8_t *line, uint8_t *target) {
    const filter *across = &resize->across;
    for (uint32_t i = 0; i < resize->targetWidth; i++) {
        const int16_t *weights = across->weights + (size_t)i * across->taps;
        const uint8_t *pixel = line + (size_t)across->starts[i] * 4;
        int32_t sums[4] = {0};
        for (uint32_t t = 0; t < across->taps && t < resize->width; t++, pixel += 4)
            for (int c = 0; c < 4; c++) sums[c] += pixel[c] * weights[t];
        for (int c = 0; c < 4; c++) target[i * 4 + c] = level(sums[c] + (1 << (across->shift - 1)), across->shift);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static size_t downWide(
    const uint8_t *const *lines, uint32_t rows, const int16_t *weights, int shift, size_t count, uint8_t *line) {
    const __m256i zero = _mm256_setzero_si256();
    const __m128i by = _mm_cvtsi32_si128(shift);
    size_t x = 0;
    for (; x + 32 <= count; x += 32) {
        __m256i a = _mm256_set1_epi32(1 << (shift - 1)), b = a, c = a, d = a;
        for (uint32_t t = 0; t < rows; t += 2) {
            // A window that is longer than the source has no weight past its end, so the last row replaces the missing
            // one.
            __m256i one = _mm256_loadu_si256((const __m256i *)(lines[t] + x));
            __m256i two = _mm256_loadu_si256((const __m256i *)(lines[t + 1 < rows ? t + 1 : t] + x));
            int32_t pairBits;
            memcpy(&pairBits, weights + t, 4);
            __m256i pair = _mm256_set1_epi32(pairBits);
            __m256i low = _mm256_unpacklo_epi8(one, two), high = _mm256_unpackhi_epi8(one, two);
            a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), pair));
            b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), pair));
            c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), pair));
            d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), pair));
        }
        __m256i left = _mm256_packs_epi32(_mm256_sra_epi32(a, by), _mm256_sra_epi32(b, by));
        __m256i right = _mm256_packs_epi32(_mm256_sra_epi32(c, by), _mm256_sra_epi32(d, by));
        _mm256_storeu_si256((__m256i *)(line + x), _mm256_packus_epi16(left, right));
    }
    return x;
}

__attribute__((target("avx2"))) static void acrossWide(
    const tern_resize *resize, const uint8_t *line, uint8_t *target) {
    const filter *across = &resize->across;
    const __m128i pairs = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m128i by = _mm_cvtsi32_si128(across->shift), half = _mm_set1_epi32(1 << (across->shift - 1));
    for (uint32_t i = 0; i < resize->targetWidth; i++) {
        const int16_t *weights = across->weights + (size_t)i * across->taps;
        const uint8_t *pixel = line + (size_t)across->starts[i] * 4;
        __m256i sum = _mm256_setzero_si256();
        for (uint32_t t = 0; t < across->taps; t += 4, pixel += 16) {
            __m128i four = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)pixel), pairs);
            __m256i weight = _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)(weights + t)));
            weight = _mm256_permutevar8x32_epi32(weight, spread);
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepu8_epi16(four), weight));
        }
        __m128i all = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        all = _mm_sra_epi32(_mm_add_epi32(all, half), by);
        all = _mm_packs_epi32(all, all);
        all = _mm_packus_epi16(all, all);
        int32_t bits = _mm_cvtsi128_si32(all);
        memcpy(target + (size_t)i * 4, &bits, 4);
    }
}
#endif

/// Returns the number of rows that a target row is made of: all taps, unless the source has fewer rows.
static uint32_t span(const tern_resize *resize, uint32_t y) {
    uint32_t left = resize->height - resize->down.starts[y];
    return left < resize->down.taps ? left : resize->down.taps;
}

/// Makes a target row from `lines`.
static void makeRow(tern_resize *resize, uint32_t y, uint8_t *row) {
    const filter *down = &resize->down;
    const int16_t *weights = down->weights + (size_t)y * down->taps;
    size_t count = (size_t)resize->width * 4, done = 0;
#if defined(__x86_64__)
    if (resize->wide) done = downWide(resize->lines, span(resize, y), weights, down->shift, count, resize->line);
#endif
    downPlain(resize->lines, span(resize, y), weights, down->shift, done, count, resize->line);
#if defined(__x86_64__)
    if (resize->wide && resize->across.taps <= resize->width)
        acrossWide(resize, resize->line, row);
    else
#endif
        acrossPlain(resize, resize->line, row);
    // The filter overshoots at edges. A premultiplied colour must not exceed its alpha.
    for (uint32_t x = 0; x < resize->targetWidth; x++)
        for (int c = 0; c < 3; c++)
            if (row[x * 4 + c] > row[x * 4 + 3]) row[x * 4 + c] = row[x * 4 + 3];
}

bool tern_resize_fits(const tern_resize *resize, uint32_t width, uint32_t height, tern_canvas target, char *error) {
    tern_canvas source = {.stride = SIZE_MAX, .width = resize->width, .height = resize->height};
    return tern_canvas_fits(source, width, height, error)
        && tern_canvas_fits(target, resize->targetWidth, resize->targetHeight, error);
}

bool tern_resize_rows(
    tern_resize *resize, tern_picture source, tern_canvas target, uint32_t firstRow, uint32_t rows) {
    char ignored[160];
    if (!tern_resize_fits(resize, source.width, source.height, target, ignored)) return false;
    for (uint32_t y = firstRow; y < firstRow + rows && y < resize->targetHeight; y++) {
        for (uint32_t t = 0; t < span(resize, y); t++)
            resize->lines[t] = source.pixels + source.stride * (resize->down.starts[y] + t);
        makeRow(resize, y, target.pixels + target.stride * y);
    }
    return true;
}

/// Returns the place of a row in the window. Places have an offset of four bytes: to rows that are aligned to 16 or 32
/// bytes, libjpeg-turbo writes past the cache, and here they are read at once. For a thumbnail of a megapixel, this
/// takes 6.7 ms instead of 8.9 ms.
static uint8_t *place(const tern_resize *resize, uint32_t number) {
    return resize->window + 4 + placeStride(resize->width) * (number % resize->down.taps);
}

uint8_t *tern_resize_place(tern_resize *resize) {
    if (!resize->window) {
        void *memory = NULL;
        if (posix_memalign(&memory, 32, placeStride(resize->width) * resize->down.taps + 32)) return NULL;
        resize->window = memory;
    }
    return place(resize, resize->taken);
}

void tern_resize_take(tern_resize *resize, tern_canvas target) {
    resize->taken++;
    for (; resize->made < resize->targetHeight; resize->made++) {
        uint32_t start = resize->down.starts[resize->made], rows = span(resize, resize->made);
        if (start + rows > resize->taken) return;
        for (uint32_t t = 0; t < rows; t++) resize->lines[t] = place(resize, start + t);
        makeRow(resize, resize->made, target.pixels + target.stride * resize->made);
    }
}

void tern_resize_finish(tern_resize *resize, tern_canvas target) {
    char ignored[160];
    if (!tern_resize_fits(resize, resize->width, resize->height, target, ignored)) return;
    while (resize->taken < resize->height) {
        uint8_t *row = tern_resize_place(resize);
        if (!row) return;
        memset(row, 0, (size_t)resize->width * 4);
        tern_resize_take(resize, target);
    }
}
