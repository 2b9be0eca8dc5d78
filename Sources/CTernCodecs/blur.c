// Gaussian blur, one direction after the other. Up to a sigma of 2.5 by the kernel itself; above, by three box blurs
// whose boxes have soft ends, so that their variance is exactly the Gaussian's (Gwosdek et al., "Theoretical foundations
// of Gaussian convolution by extended box filtering", 2011): their cost does not grow with sigma.
#include "CTernEffects.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    /// Bytes beside each other that are blurred at once: 16 pixels of a row downwards, four rows' pixels across.
    lanesDown = 64,
    lanesAcross = 16,
    kernelReach = 10,
};

typedef struct {
    /// Pixels that the result at a place depends on, to either side.
    size_t reach;
    bool boxes;
    /// Half the box, in whole pixels; the weights of what lies within, and of the pixel beyond either end.
    size_t radius;
    float within, beyond;
    float kernel[kernelReach * 2 + 1];
} plan;

static plan makePlan(double sigma) {
    plan made = {0};
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
    double exact[kernelReach * 2 + 1], sum = 0;
    for (size_t i = 0; i <= made.reach * 2; i++) {
        const double at = (double)i - (double)made.reach;
        sum += exact[i] = exp(-at * at / (2 * sigma * sigma));
    }
    for (size_t i = 0; i <= made.reach * 2; i++) made.kernel[i] = (float)(exact[i] / sum);
    return made;
}

/// One box blur of `count` places; the line has `radius + 1` more at either end. Values are 8.8 fixed point, sums exact.
__attribute__((always_inline)) static inline void box(
    const uint16_t *line, uint16_t *out, size_t count, const plan *plan, const size_t lanes) {
    const size_t next = (plan->radius * 2 + 2) * lanes;
    const float within = plan->within, beyond = plan->beyond;
    int32_t sums[lanesDown] = {0};
    for (size_t i = lanes; i < next; i += lanes)
        for (size_t l = 0; l < lanes; l++) sums[l] += line[i + l];
    for (size_t i = 0; i < count * lanes; i += lanes)
        for (size_t l = 0; l < lanes; l++) {
            const int32_t ends = line[i + l] + line[i + next + l];
            out[i + l] = (uint16_t)(int32_t)((float)sums[l] * within + (float)ends * beyond + 0.5f);
            sums[l] += line[i + next + l] - line[i + lanes + l];
        }
}

__attribute__((always_inline)) static inline void convolve(
    const uint16_t *line, uint16_t *out, size_t count, const plan *plan, const size_t lanes) {
    for (size_t i = 0; i < count * lanes; i += lanes) {
        float sums[lanesDown] = {0};
        for (size_t t = 0; t <= plan->reach * 2; t++)
            for (size_t l = 0; l < lanes; l++) sums[l] += (float)line[i + t * lanes + l] * plan->kernel[t];
        for (size_t l = 0; l < lanes; l++) out[i + l] = (uint16_t)(int32_t)(sums[l] + 0.5f);
    }
}

/// Blurs `count` places of `line`, which has `reach` more at either end. Returns where the result is: in either buffer.
__attribute__((always_inline)) static inline const uint16_t *blurLine(
    uint16_t *line, uint16_t *spare, size_t count, const plan *plan, const size_t lanes) {
    if (!plan->boxes) {
        convolve(line, spare, count, plan, lanes);
        return spare;
    }
    const size_t margin = (plan->radius + 1) * 2;
    box(line, spare, count + margin * 2, plan, lanes);
    box(spare, line, count + margin, plan, lanes);
    box(line, spare, count, plan, lanes);
    return spare;
}

/// The place in the picture for one beyond its ends: …2 1 0 | 0 1 2 … n−1 | n−1 n−2….
static size_t mirrored(size_t index, size_t reach, size_t count) {
    const size_t period = count * 2;
    const size_t at = (index + period - reach % period) % period;
    return at < count ? at : period - 1 - at;
}

static inline uint8_t level(uint16_t value) { return (uint8_t)((value + 128) >> 8); }

bool tern_blur_columns(
    tern_picture source, double sigma, uint8_t *target, size_t targetStride, uint32_t firstColumn, uint32_t columns) {
    const plan plan = makePlan(sigma);
    const size_t length = source.height + plan.reach * 2;
    uint16_t *line = calloc(length * lanesDown * 2, sizeof *line);
    if (!line) return false;
    uint16_t *spare = line + length * lanesDown;
    const size_t end = (size_t)(firstColumn + columns < source.width ? firstColumn + columns : source.width) * 4;
    for (size_t from = (size_t)firstColumn * 4; from < end; from += lanesDown) {
        const size_t width = end - from < lanesDown ? end - from : lanesDown;
        for (size_t i = 0; i < length; i++) {
            const uint8_t *row = source.pixels + source.stride * mirrored(i, plan.reach, source.height) + from;
            for (size_t l = 0; l < width; l++) line[i * lanesDown + l] = (uint16_t)(row[l] << 8);
        }
        const uint16_t *made = blurLine(line, spare, source.height, &plan, lanesDown);
        for (size_t y = 0; y < source.height; y++)
            for (size_t l = 0; l < width; l++) target[targetStride * y + from + l] = level(made[y * lanesDown + l]);
    }
    free(line);
    return true;
}

bool tern_blur_rows(
    uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, double sigma, uint32_t firstRow, uint32_t rows) {
    const plan plan = makePlan(sigma);
    const size_t length = width + plan.reach * 2;
    uint16_t *line = calloc(length * lanesAcross * 2, sizeof *line);
    if (!line) return false;
    uint16_t *spare = line + length * lanesAcross;
    const uint32_t end = firstRow + rows < height ? firstRow + rows : height;
    for (uint32_t y = firstRow; y < end; y += lanesAcross / 4) {
        const uint32_t count = end - y < lanesAcross / 4 ? end - y : lanesAcross / 4;
        uint8_t *first = pixels + stride * y;
        for (size_t i = 0; i < length; i++) {
            const uint8_t *pixel = first + mirrored(i, plan.reach, width) * 4;
            for (uint32_t r = 0; r < count; r++)
                for (size_t c = 0; c < 4; c++)
                    line[i * lanesAcross + r * 4 + c] = (uint16_t)(pixel[stride * r + c] << 8);
        }
        const uint16_t *made = blurLine(line, spare, width, &plan, lanesAcross);
        for (size_t x = 0; x < width; x++)
            for (uint32_t r = 0; r < count; r++)
                for (size_t c = 0; c < 4; c++)
                    first[stride * r + x * 4 + c] = level(made[x * lanesAcross + r * 4 + c]);
    }
    free(line);
    return true;
}
