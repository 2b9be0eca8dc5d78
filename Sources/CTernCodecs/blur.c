// Gaussian blur, one direction after the other. Up to a sigma of 2.5, the blur uses the kernel itself. Above that, it
// uses three box blurs whose boxes have soft ends, so that their variance is exactly the Gaussian's (Gwosdek et al.,
// "Theoretical foundations of Gaussian convolution by extended box filtering", 2011). Their cost does not grow with
// sigma, which each direction limits by its own length.
#include "CTernEffects.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    /// The number of adjacent bytes that are blurred at once, in registers: four pixels of a row or of a column.
    lanes = 16,
    /// The number of adjacent columns of lanes that are read together. They fill a cache line.
    strips = 4,
    kernelReach = 10,
};

typedef int32_t whole8 __attribute__((vector_size(32)));
typedef float real8 __attribute__((vector_size(32)));
typedef int16_t short8 __attribute__((vector_size(16)));
typedef int16_t short16 __attribute__((vector_size(32)));
typedef uint8_t bytes16 __attribute__((vector_size(16)));

/// Sixteen channels in fixed point with seven fractional bits, from 0 to 32,640. Every instruction set can pack these
/// values.
typedef struct {
    int16_t values[lanes];
} bundle;

typedef struct {
    /// The number of pixels to either side that a resulting pixel depends on.
    size_t reach;
    bool boxes;
    /// Half the box in whole pixels, the weight of the pixels within the box, and the weight of the pixel beyond either
    /// end.
    size_t radius;
    float within, beyond;
    /// The kernel from its middle outwards.
    float kernel[kernelReach + 1];
} plan;

/// The plan for lines of a length. At a sigma of twice the length, only the mean of the mirrored line is left.
static plan makePlan(double sigma, uint32_t length) {
    plan made = {0};
    sigma = fmin(sigma, length * 2.0);
    made.boxes = sigma > 2.5;
    if (made.boxes) {
        const double variance = sigma * sigma / 3;
        const double radius = floor((sqrt(12 * variance + 1) - 1) / 2);
        const double next = radius + 1;
        const double end = (2 * radius + 1) * (radius * next - 3 * variance) / (6 * (variance - next * next));
        const double sum = 2 * (radius + end) + 1;
        made.radius = (size_t)radius;
        made.within = (float)(1 / sum);
        made.beyond = (float)(end / sum);
        made.reach = 3 * (made.radius + 1);
        return made;
    }
    made.reach = (size_t)ceil(sigma * 4);
    double exact[kernelReach + 1], sum = 0;
    for (size_t i = 0; i <= made.reach; i++) {
        exact[i] = exp(-(double)(i * i) / (2 * sigma * sigma));
        sum += i == 0 ? exact[i] : 2 * exact[i];
    }
    for (size_t i = 0; i <= made.reach; i++) made.kernel[i] = (float)(exact[i] / sum);
    return made;
}

// Functions pass vectors of 32 bytes only to functions that are inlined, so no calling convention applies.
#pragma clang diagnostic ignored "-Wpsabi"
#define INLINE __attribute__((always_inline)) static inline

INLINE whole8 half(const bundle *bundle, int part) {
    short8 values;
    memcpy(&values, bundle->values + part * 8, sizeof values);
    return __builtin_convertvector(values, whole8);
}

INLINE void put(bundle *bundle, int part, real8 values) {
    const short8 rounded = __builtin_convertvector(__builtin_convertvector(values + 0.5f, whole8), short8);
    memcpy(bundle->values + part * 8, &rounded, sizeof rounded);
}

/// Applies one box blur to `count` places. The line has `radius + 1` more places at either end. The sums are exact.
INLINE void box(const bundle *line, bundle *out, size_t count, const plan *plan) {
    const size_t next = plan->radius * 2 + 2;
    const float within = plan->within, beyond = plan->beyond;
    whole8 left = {0}, right = {0};
    for (size_t i = 1; i < next; i++) {
        left += half(line + i, 0);
        right += half(line + i, 1);
    }
    for (size_t i = 0; i < count; i++) {
        const whole8 newLeft = half(line + i + next, 0), newRight = half(line + i + next, 1);
        const real8 leftEnds = __builtin_convertvector(half(line + i, 0) + newLeft, real8);
        const real8 rightEnds = __builtin_convertvector(half(line + i, 1) + newRight, real8);
        put(out + i, 0, __builtin_convertvector(left, real8) * within + leftEnds * beyond);
        put(out + i, 1, __builtin_convertvector(right, real8) * within + rightEnds * beyond);
        left += newLeft - half(line + i + 1, 0);
        right += newRight - half(line + i + 1, 1);
    }
}

INLINE void convolve(const bundle *line, bundle *out, size_t count, const plan *plan) {
    for (size_t i = 0; i < count; i++) {
        const bundle *middle = line + i + plan->reach;
        real8 left = __builtin_convertvector(half(middle, 0), real8) * plan->kernel[0];
        real8 right = __builtin_convertvector(half(middle, 1), real8) * plan->kernel[0];
        for (size_t t = 1; t <= plan->reach; t++) {
            const bundle *before = middle - t, *after = middle + t;
            left += __builtin_convertvector(half(before, 0) + half(after, 0), real8) * plan->kernel[t];
            right += __builtin_convertvector(half(before, 1) + half(after, 1), real8) * plan->kernel[t];
        }
        put(out + i, 0, left);
        put(out + i, 1, right);
    }
}

/// Blurs the `count` places in the middle of a line into `spare`. `line` has `reach` more places at either end.
INLINE void blurAny(bundle *line, bundle *spare, size_t count, const plan *plan) {
    // Beyond its ends the line is continued by its mirror image: …2 1 0 | 0 1 2 … n−1 | n−1 n−2….
    bundle *first = line + plan->reach;
    for (size_t i = 0; i < plan->reach; i++) {
        const size_t at = i % (count * 2), from = at < count ? at : count * 2 - 1 - at;
        first[-(ptrdiff_t)i - 1] = first[from];
        first[count + i] = first[count - 1 - from];
    }
    if (!plan->boxes) {
        convolve(line, spare, count, plan);
        return;
    }
    // Each box blur shortens the line by the places that it reads beyond the ends. A symmetric filter keeps a mirrored
    // line mirrored.
    const size_t margin = (plan->radius + 1) * 2;
    box(line, spare, count + margin * 2, plan);
    box(spare, line, count + margin, plan);
    box(line, spare, count, plan);
}

static void blurPlain(bundle *line, bundle *spare, size_t count, const plan *plan) {
    blurAny(line, spare, count, plan);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void blurWide(
    bundle *line, bundle *spare, size_t count, const plan *plan) {
    blurAny(line, spare, count, plan);
}
#endif

static void blurLine(bundle *line, bundle *spare, size_t count, const plan *plan) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        blurWide(line, spare, count, plan);
        return;
    }
#endif
    blurPlain(line, spare, count, plan);
}

INLINE bundle widened(bytes16 bytes) {
    const short16 values = __builtin_convertvector(bytes, short16) << 7;
    bundle made;
    memcpy(made.values, &values, sizeof values);
    return made;
}

INLINE bytes16 narrowed(const bundle *bundle) {
    short16 values;
    memcpy(&values, bundle->values, sizeof values);
    return __builtin_convertvector((values + 64) >> 7, bytes16);
}

uint64_t tern_blur_memory(uint32_t width, uint32_t height, double sigma) {
    const uint64_t columns = (height + (uint64_t)makePlan(sigma, height).reach * 2) * (strips + 1);
    const uint64_t rows = (width + (uint64_t)makePlan(sigma, width).reach * 2) * 2;
    return (columns > rows ? columns : rows) * sizeof(bundle);
}

bool tern_blur_columns(
    tern_picture source, double sigma, uint8_t *target, size_t targetStride, uint32_t firstColumn, uint32_t columns) {
    const plan plan = makePlan(sigma, source.height);
    const size_t length = source.height + plan.reach * 2;
    bundle *lines = malloc(length * (strips + 1) * sizeof *lines), *spare = lines + length * strips;
    if (!lines) return false;
    const size_t end = (size_t)(firstColumn + columns < source.width ? firstColumn + columns : source.width) * 4;
    for (size_t from = (size_t)firstColumn * 4; from < end; from += lanes * strips) {
        const size_t width = end - from < lanes * strips ? end - from : lanes * strips;
        for (size_t y = 0; y < source.height; y++) {
            bytes16 bytes[strips] = {{0}};
            memcpy(bytes, source.pixels + source.stride * y + from, width);
            for (size_t s = 0; s < strips; s++) lines[length * s + plan.reach + y] = widened(bytes[s]);
        }
        for (size_t s = 0; s * lanes < width; s++) {
            const size_t count = width - s * lanes < lanes ? width - s * lanes : lanes;
            blurLine(lines + length * s, spare, source.height, &plan);
            for (size_t y = 0; y < source.height; y++) {
                const bytes16 bytes = narrowed(spare + y);
                memcpy(target + targetStride * y + from + s * lanes, &bytes, count);
            }
        }
    }
    free(lines);
    return true;
}

bool tern_blur_rows(
    uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, double sigma, uint32_t firstRow, uint32_t rows) {
    const plan plan = makePlan(sigma, width);
    const size_t length = width + plan.reach * 2, bundled = lanes / 4;
    bundle *line = malloc(length * 2 * sizeof *line), *spare = line + length;
    if (!line) return false;
    const uint32_t end = firstRow + rows < height ? firstRow + rows : height;
    for (uint32_t y = firstRow; y < end; y += bundled) {
        const size_t count = end - y < bundled ? end - y : bundled;
        uint8_t *first = pixels + stride * y;
        for (size_t x = 0; x < width; x++) {
            bytes16 bytes = {0};
            for (size_t r = 0; r < count; r++) memcpy((uint8_t *)&bytes + r * 4, first + stride * r + x * 4, 4);
            line[plan.reach + x] = widened(bytes);
        }
        blurLine(line, spare, width, &plan);
        for (size_t x = 0; x < width; x++) {
            const bytes16 bytes = narrowed(spare + x);
            for (size_t r = 0; r < count; r++) memcpy(first + stride * r + x * 4, (const uint8_t *)&bytes + r * 4, 4);
        }
    }
    free(line);
    return true;
}
