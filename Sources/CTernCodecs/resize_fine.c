// Lanczos3 with floating point, for samples of any kind, in levels or in light. Each row of the source is reduced in its
// width once, and kept while target rows need it.
#include "deep.h"
#include "resize_side.h"
#include "srgb.h"
#include <stdlib.h>

typedef float pixel4 __attribute__((vector_size(16)));

typedef struct {
    uint32_t *starts;
    float *weights;
    uint32_t taps;
} filter;

enum { LIGHT_STEPS = 4096 };

struct tern_fine_resize {
    uint32_t width, height, targetWidth, targetHeight;
    tern_samples samples;
    bool inLight;
    filter across, down;
    // The reduced rows of the source: one place for each row that a target row is made of. A row's place is its number
    // modulo the number of places. The numbers of the rows in the places, one above the row's own; 0 for none.
    pixel4 *window;
    uint32_t *numbers;
    // A row of the source.
    float *line;
    // The light of values from 0 to 1, between which it is interpolated, and that of bytes; only for light.
    float lights[LIGHT_STEPS + 2], byteLights[256];
};

static void fillLights(tern_fine_resize *resize) {
    for (int i = 0; i <= LIGHT_STEPS + 1; i++) resize->lights[i] = (float)tern_srgb_light(i / (double)LIGHT_STEPS);
    for (int i = 0; i < 256; i++) resize->byteLights[i] = (float)tern_srgb_light(i / 255.0);
}

/// Returns the light of a value. Beyond 0 and 1, the curve is continued, and mirrored.
static float toLight(const tern_fine_resize *resize, float value) {
    if (value < 0) return -toLight(resize, -value);
    if (value > 1) return (float)tern_srgb_light(value);
    const float place = value * LIGHT_STEPS;
    const int low = (int)place;
    return resize->lights[low] + (resize->lights[low + 1] - resize->lights[low]) * (place - (float)low);
}

static float fromLight(float light) {
    if (light < 0) return -fromLight(-light);
    return light <= 0.0031308f ? light * 12.92f : 1.055f * powf(light, 1 / 2.4f) - 0.055f;
}

static bool makeFilter(filter *made, tern_side side) {
    made->taps = side.taps;
    made->starts = calloc(side.target, sizeof *made->starts);
    made->weights = calloc((size_t)side.target * side.taps, sizeof *made->weights);
    double *exact = malloc(side.taps * sizeof *exact);
    for (uint32_t i = 0; made->starts && made->weights && exact && i < side.target; i++) {
        tern_weigh(&side, i, &made->starts[i], exact);
        for (uint32_t t = 0; t < side.taps; t++) made->weights[(size_t)i * side.taps + t] = (float)exact[t];
    }
    const bool isMade = made->starts && made->weights && exact;
    free(exact);
    return isMade;
}

uint64_t tern_fine_resize_memory(tern_extent source, uint32_t targetWidth, uint32_t targetHeight) {
    const tern_side across = tern_make_side(source.width, source.eighthsAcross, targetWidth, 1);
    const tern_side down = tern_make_side(source.height, source.eighthsDown, targetHeight, 1);
    // In floating point, which does not overflow.
    const double bytes = 4.0 * targetWidth * (across.taps + 1.0) + 4.0 * targetHeight * (down.taps + 1.0)
        + 8.0 * across.taps + 12.0 * down.taps + 16.0 * targetWidth * (down.taps + 1.0) + 16.0 * source.width;
    return bytes < 0x1p62 ? (uint64_t)bytes : (uint64_t)1 << 62;
}

tern_fine_resize *tern_fine_resize_open(
    tern_extent source, uint32_t targetWidth, uint32_t targetHeight, tern_samples samples, bool inLight) {
    tern_fine_resize *resize = calloc(1, sizeof *resize);
    if (!resize) return NULL;
    resize->width = source.width;
    resize->height = source.height;
    resize->targetWidth = targetWidth;
    resize->targetHeight = targetHeight;
    resize->samples = samples;
    resize->inLight = inLight;
    if (inLight) fillLights(resize);
    const bool isMade =
        makeFilter(&resize->across, tern_make_side(source.width, source.eighthsAcross, targetWidth, 1))
        && makeFilter(&resize->down, tern_make_side(source.height, source.eighthsDown, targetHeight, 1));
    if (isMade) {
        resize->window = malloc((size_t)targetWidth * resize->down.taps * sizeof *resize->window);
        resize->numbers = calloc(resize->down.taps, sizeof *resize->numbers);
        resize->line = malloc((size_t)source.width * 4 * sizeof *resize->line);
    }
    if (resize->window && resize->numbers && resize->line) return resize;
    tern_fine_resize_close(resize);
    return NULL;
}

void tern_fine_resize_close(tern_fine_resize *resize) {
    if (!resize) return;
    free(resize->across.starts);
    free(resize->across.weights);
    free(resize->down.starts);
    free(resize->down.weights);
    free(resize->window);
    free(resize->numbers);
    free(resize->line);
    free(resize);
}

/// Writes the pixels of a row as numbers, premultiplied: of their values, or of their light.
static void readRow(const tern_fine_resize *resize, const uint8_t *row) {
    float *line = resize->line;
    tern_load_samples(row, resize->samples, line, (size_t)resize->width * 4);
    if (!resize->inLight) return;
    for (size_t i = 0; i < (size_t)resize->width * 4; i += 4) {
        const float alpha = line[i + 3];
        if (resize->samples == TERN_SAMPLES_BYTES && row[i + 3] == 255) {
            for (size_t c = i; c < i + 3; c++) line[c] = resize->byteLights[row[c]];
        } else {
            for (size_t c = i; c < i + 3; c++) line[c] = alpha > 0 ? toLight(resize, line[c] / alpha) * alpha : 0;
        }
    }
}

/// Returns a row of the source in the width of the target.
static const pixel4 *reducedRow(tern_fine_resize *resize, tern_picture source, uint32_t number) {
    const uint32_t place = number % resize->down.taps;
    pixel4 *reduced = resize->window + (size_t)place * resize->targetWidth;
    if (resize->numbers[place] == number + 1) return reduced;
    resize->numbers[place] = number + 1;
    readRow(resize, source.pixels + source.stride * number);
    const filter *across = &resize->across;
    for (uint32_t x = 0; x < resize->targetWidth; x++) {
        const float *weights = across->weights + (size_t)x * across->taps;
        const float *pixel = resize->line + (size_t)across->starts[x] * 4;
        pixel4 sum = {0};
        for (uint32_t t = 0; t < across->taps; t++, pixel += 4) {
            pixel4 value;
            memcpy(&value, pixel, sizeof value);
            sum += value * weights[t];
        }
        reduced[x] = sum;
    }
    return reduced;
}

/// Writes a pixel. The filter overshoots at edges: alpha stays from 0 to 1, and a colour of levels from 0 to its alpha.
static void writePixel(const tern_fine_resize *resize, pixel4 pixel, uint8_t *target) {
    const float alpha = tern_unit(pixel[3]);
    float values[4] = {pixel[0], pixel[1], pixel[2], alpha};
    for (int c = 0; c < 3; c++) {
        if (resize->inLight) values[c] = alpha > 0 ? fromLight(values[c] / alpha) * alpha : 0;
        if (resize->samples == TERN_SAMPLES_HALVES) continue;
        values[c] = values[c] > 0 ? values[c] < alpha ? values[c] : alpha : 0;
    }
    for (int c = 0; c < 4; c++) {
        if (resize->samples == TERN_SAMPLES_BYTES) {
            target[c] = (uint8_t)(values[c] * 255 + 0.5f);
            continue;
        }
        const uint16_t word = resize->samples == TERN_SAMPLES_WORDS
            ? (uint16_t)(values[c] * 65535 + 0.5f) : tern_to_half(values[c]);
        memcpy(target + c * 2, &word, sizeof word);
    }
}

bool tern_fine_resize_rows(
    tern_fine_resize *resize, tern_picture source, tern_canvas target, uint32_t firstRow, uint32_t rows) {
    const size_t bytes = tern_pixel_bytes(resize->samples);
    if (source.width != resize->width || source.height != resize->height || source.stride < source.width * bytes
        || target.width != resize->targetWidth || target.height != resize->targetHeight
        || target.stride < target.width * bytes) return false;
    const filter *down = &resize->down;
    pixel4 *sums = malloc((size_t)resize->targetWidth * sizeof *sums);
    if (!sums) return false;
    for (uint32_t y = firstRow; y < firstRow + rows && y < resize->targetHeight; y++) {
        memset(sums, 0, (size_t)resize->targetWidth * sizeof *sums);
        for (uint32_t t = 0; t < down->taps; t++) {
            const float weight = down->weights[(size_t)y * down->taps + t];
            if (weight == 0) continue;
            const pixel4 *row = reducedRow(resize, source, down->starts[y] + t);
            for (uint32_t x = 0; x < resize->targetWidth; x++) sums[x] += row[x] * weight;
        }
        uint8_t *to = target.pixels + target.stride * y;
        for (uint32_t x = 0; x < resize->targetWidth; x++) writePixel(resize, sums[x], to + x * bytes);
    }
    free(sums);
    return true;
}
