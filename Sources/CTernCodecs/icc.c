// Converts the colours of ICC profiles to sRGB or Display P3. Profiles of primaries and curves, which nearly all are, are
// converted here. Others, such as those of presses, are converted by lcms2, which is loaded when the first of them
// arrives. lcms2 takes 9 ms to prepare a conversion that takes 0.1 ms to prepare here.
#include "icc.h"
#include "profile.h"
#include "srgb.h"

#if defined(__linux__)
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Declarations from <lcms2.h>. Its functions and numbers have not changed since 2.0 (2009), and all of its structures
// are opaque.
enum { GREY_8 = 0x30009, RGB_8 = 0x40019, RGBA_8 = 0x40099, RGBA_16 = 0x4009A, CMYK_8_REVERSED = 0x62021 };
enum { PERCEPTUAL = 0 };
static struct {
    void *(*open)(const void *, uint32_t), *(*sRGB)(void);
    int (*close)(void *);
    void *(*create)(void *, uint32_t, void *, uint32_t, uint32_t, uint32_t);
    void (*run)(void *, const void *, void *, uint32_t), (*delete)(void *);
    bool found;
} library;

static void loadOnce(void) {
    void *handle = dlopen("liblcms2.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    const struct { const char *name; void *place; } symbols[] = {
        {"cmsOpenProfileFromMem", &library.open}, {"cmsCreate_sRGBProfile", &library.sRGB},
        {"cmsCloseProfile", &library.close}, {"cmsCreateTransform", &library.create},
        {"cmsDoTransform", &library.run}, {"cmsDeleteTransform", &library.delete},
    };
    library.found = true;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        memcpy(symbols[i].place, &symbol, sizeof symbol);
        library.found = library.found && symbol;
    }
}

bool tern_icc_available(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return library.found;
}

static uint32_t be32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t be16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }
static double fixed(const uint8_t *at) { return (int32_t)be32(at) / 65536.0; }

/// Returns the data of a tag that has at least a size, or NULL if there is no such tag.
static const uint8_t *tag(const uint8_t *profile, size_t count, const char *name, size_t least, size_t *size) {
    size_t tags = be32(profile + 128);
    for (size_t i = 0; i < tags && i < 100 && 144 + i * 12 <= count; i++) {
        const uint8_t *entry = profile + 132 + i * 12;
        size_t at = be32(entry + 4), length = be32(entry + 8);
        if (memcmp(entry, name, 4) || at > count || length > count - at || length < least) continue;
        *size = length;
        return profile + at;
    }
    return NULL;
}

/// Returns the light for a value from 0 to 1 by a curve (ICC.1:2022 §10.6, §10.18), or not a number if the kind of
/// curve is unknown.
static double light(const uint8_t *curve, size_t size, double value) {
    size_t points = be32(curve + 8);
    if (!memcmp(curve, "curv", 4)) {
        if (points == 0) return value;
        if (points > (size - 12) / 2) return NAN;
        if (points == 1) return pow(value, be16(curve + 12) / 256.0);
        double at = value * (double)(points - 1);
        size_t low = (size_t)at, high = low + 1 < points ? low + 1 : low;
        double a = be16(curve + 12 + low * 2) / 65535.0, b = be16(curve + 12 + high * 2) / 65535.0;
        return a + (b - a) * (at - (double)low);
    }
    static const unsigned counts[] = {1, 3, 4, 5, 7};
    unsigned kind = be16(curve + 8);
    if (memcmp(curve, "para", 4) || kind > 4 || size < 12 + counts[kind] * 4) return NAN;
    double p[7] = {0};
    for (unsigned i = 0; i < counts[kind]; i++) p[i] = fixed(curve + 12 + i * 4);
    double power = kind == 0 ? pow(value, p[0]) : pow(fmax(0, p[1] * value + p[2]), p[0]);
    switch (kind) {
    case 0: return power;
    case 1: return p[1] != 0 && value >= -p[2] / p[1] ? power : 0;
    case 2: return p[1] != 0 && value >= -p[2] / p[1] ? power + p[3] : p[3];
    case 3: return value >= p[4] ? power : p[3] * value;
    default: return value >= p[4] ? power + p[5] : p[3] * value + p[6];
    }
}

enum { STEPS = TERN_LIGHT_STEPS };
static uint8_t levels[STEPS + 1];

static void fillLevels(void) {
    for (int i = 0; i <= STEPS; i++) levels[i] = (uint8_t)(tern_srgb_level(i / (double)STEPS) * 255 + 0.5);
}

static uint8_t level(float steps) {
    return levels[steps > 0 ? steps < STEPS ? (int)(steps + 0.5f) : STEPS : 0];
}

tern_icc *tern_icc_new(tern_color_target target) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fillLevels);
    tern_icc *icc = calloc(1, sizeof *icc);
    if (!icc || !target.isFine) return icc;
    icc->fine = calloc(1, sizeof *icc->fine);
    if (icc->fine) return icc;
    free(icc);
    return NULL;
}

void tern_icc_set_target(tern_icc *icc, tern_color_target target) {
    if (!target.isP3) return;
    float mix[3][3];
    memcpy(mix, icc->mix, sizeof mix);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            icc->mix[i][j] = tern_srgb_to_p3[i][0] * mix[0][j] + tern_srgb_to_p3[i][1] * mix[1][j] + tern_srgb_to_p3[i][2] * mix[2][j];
}

/// Reads the light of each step from 0 to 1 from a curve. Returns false if there is no curve of a known kind.
static bool readCurve(const uint8_t *profile, size_t count, const char *name, int steps, float *lights) {
    size_t size = 0;
    const uint8_t *curve = tag(profile, count, name, 12, &size);
    for (int i = 0; curve && i <= steps; i++) {
        double value = light(curve, size, i / (double)steps);
        if (isnan(value)) return false;
        lights[i] = (float)fmax(0, fmin(value, 1));
    }
    return curve != NULL;
}

/// Reads the curve of a channel.
static bool readChannel(tern_icc *icc, const uint8_t *profile, size_t count, const char *name, int channel) {
    if (icc->fine && !readCurve(profile, count, name, TERN_FINE_STEPS, icc->fine->lights[channel])) return false;
    return readCurve(profile, count, name, 255, icc->lights[channel]);
}

/// Computes the conversion from the profile's primaries to those of sRGB, both under D50, which profiles refer to
/// (ICC.1:2022, annex F).
static bool readPrimaries(const uint8_t *profile, size_t count, float mix[3][3]) {
    static const char *const names[] = {"rXYZ", "gXYZ", "bXYZ"};
    static const double inverse[3][3] = {
        {3.1341262, -1.6173832, -0.4906693}, {-0.9787947, 1.9162531, 0.0334508}, {0.0719838, -0.2289824, 1.4053863}};
    size_t size = 0;
    for (int i = 0; i < 3; i++) {
        const uint8_t *point = tag(profile, count, names[i], 20, &size);
        if (!point) return false;
        for (int c = 0; c < 3; c++) {
            double sum = 0;
            for (int k = 0; k < 3; k++) sum += inverse[c][k] * fixed(point + 8 + k * 4);
            mix[c][i] = (float)(sum * STEPS);
        }
    }
    return true;
}

/// Reads a profile of curves. Returns false if the profile is of another kind.
static bool readShaper(tern_icc *icc, const uint8_t *profile, size_t count) {
    size_t size = 0;
    if (memcmp(profile + 20, "XYZ ", 4) || tag(profile, count, "A2B0", 0, &size)) return false;
    if (icc->grey) {
        if (!readChannel(icc, profile, count, "kTRC", 0)) return false;
        for (int i = 0; i < 256; i++) memset(icc->greys[i], level(icc->lights[0][i] * STEPS), 3);
        return true;
    }
    return readPrimaries(profile, count, icc->mix) && readChannel(icc, profile, count, "rTRC", 0)
        && readChannel(icc, profile, count, "gTRC", 1) && readChannel(icc, profile, count, "bTRC", 2);
}

/// Returns the factor of a pixel's light, so that what is brighter than the white of sRGB fits below it.
static inline float tone(const tern_icc *icc, const uint8_t *pixel, float r, float g, float b) {
    if (icc->tones == TERN_TONES_PQ) {
        const uint8_t most = pixel[0] > pixel[1] ? pixel[0] : pixel[1];
        return icc->peaks[most > pixel[2] ? most : pixel[2]];
    }
    const float luminance = 0.2627f * r + 0.6780f * g + 0.0593f * b;
    const float system = icc->luminances[(int)(luminance * TERN_TONE_STEPS + 0.5f)];
    const float most = r > g ? r : g, light = (most > b ? most : b) * system;
    return system * icc->brightest[(int)(light * TERN_TONE_STEPS + 0.5f)];
}

static inline void shape(const tern_icc *icc, uint8_t *pixel) {
    float r = icc->lights[0][pixel[0]], g = icc->lights[1][pixel[1]], b = icc->lights[2][pixel[2]];
    if (icc->tones != TERN_TONES_NONE) {
        const float factor = tone(icc, pixel, r, g, b);
        r *= factor;
        g *= factor;
        b *= factor;
    }
    for (int c = 0; c < 3; c++) pixel[c] = level(icc->mix[c][0] * r + icc->mix[c][1] * g + icc->mix[c][2] * b);
}

bool tern_icc_is_plain(const tern_icc *icc) {
    for (int i = 0; i < 256; i++)
        for (int mask = icc->grey ? 7 : 1; mask < 8; mask++) {
            uint8_t pixel[3];
            for (int c = 0; c < 3; c++) pixel[c] = mask >> c & 1 ? (uint8_t)i : 0;
            if (icc->grey) memcpy(pixel, icc->greys[i], 3);
            else shape(icc, pixel);
            for (int c = 0; c < 3; c++)
                if (abs(pixel[c] - (mask >> c & 1 ? i : 0)) > 2) return false;
        }
    return true;
}

/// Creates the conversion by lcms2. Returns false without lcms2. For a grey profile, the conversion is only used here,
/// to compute the levels.
static bool open(tern_icc *icc, const uint8_t *profile, size_t count, bool ink, tern_color_target target) {
    if (!tern_icc_available()) return false;
    size_t wideCount = 0;
    const tern_color_numbers p3 = {.primaries = 12, .transfer = 13};
    uint8_t *wide = target.isP3 ? tern_color_profile(&p3, &wideCount) : NULL;
    void *from = library.open(profile, (uint32_t)count);
    void *to = target.isP3 ? wide ? library.open(wide, (uint32_t)wideCount) : NULL : library.sRGB();
    const uint32_t input = ink ? CMYK_8_REVERSED : icc->grey ? GREY_8 : RGBA_8;
    if (from && to) {
        icc->transform = library.create(from, input, to, icc->grey ? RGB_8 : RGBA_8, PERCEPTUAL, 0);
        if (icc->fine && !ink && !icc->grey)
            icc->fine->transform = library.create(from, RGBA_16, to, RGBA_8, PERCEPTUAL, 0);
    }
    if (from) library.close(from);
    if (to) library.close(to);
    free(wide);
    uint8_t each[256];
    for (int i = 0; i < 256; i++) each[i] = (uint8_t)i;
    if (icc->transform && icc->grey) library.run(icc->transform, each, icc->greys, 256);
    return icc->transform && !(icc->fine && !ink && !icc->grey && !icc->fine->transform);
}

/// Returns whether a profile is one of pixels, and of the kind of samples.
static bool isUsable(const uint8_t *profile, size_t count, int channels) {
    // The largest profiles in use, those of presses, have 6 MB.
    if (count < 132 || count > 8 << 20 || memcmp(profile + 36, "acsp", 4)) return false;
    const bool grey = !memcmp(profile + 16, "GRAY", 4);
    const bool fits = channels == TERN_CHANNELS_INK ? !memcmp(profile + 16, "CMYK", 4)
        : (grey && channels == TERN_CHANNELS_GREY) || !memcmp(profile + 16, "RGB ", 4);
    // Accepts profiles of displays, input devices, output devices and colour spaces. Rejects links and effects.
    const uint8_t *class = profile + 12;
    return fits
        && (!memcmp(class, "mntr", 4) || !memcmp(class, "scnr", 4) || !memcmp(class, "prtr", 4)
            || !memcmp(class, "spac", 4));
}

bool tern_icc_describes_colors(const uint8_t *profile, size_t count) {
    return isUsable(profile, count, TERN_CHANNELS_RGB) && be32(profile) == count;
}

uint8_t *tern_icc_from_grey(const uint8_t *profile, size_t count, size_t *made) {
    // Greys have the same curve whatever the primaries are, here those of sRGB.
    static const double colorants[3][3] = {
        {0.43607, 0.38515, 0.14307}, {0.22249, 0.71687, 0.06061}, {0.01392, 0.09708, 0.71410}};
    static const double adapted[3][3] = {
        {1.04788, 0.02292, -0.05022}, {0.02959, 0.99048, -0.01707}, {-0.00925, 0.01508, 0.75168}};
    float lights[256];
    size_t size = 0;
    if (memcmp(profile + 16, "GRAY", 4) || memcmp(profile + 20, "XYZ ", 4)) return NULL;
    if (!readCurve(profile, count, "kTRC", 255, lights)) return NULL;
    const uint8_t *curve = tag(profile, count, "kTRC", 12, &size);
    return tern_profile_write("Greys", colorants, adapted, curve, size, made);
}

tern_icc *tern_icc_open(
    const uint8_t *profile, size_t count, int channels, tern_color_target target, bool *plain) {
    *plain = false;
    if (!isUsable(profile, count, channels)) return NULL;
    const bool ink = channels == TERN_CHANNELS_INK;
    tern_icc *icc = tern_icc_new(target);
    if (!icc) return NULL;
    icc->grey = !memcmp(profile + 16, "GRAY", 4);
    const bool isShaper = !ink && readShaper(icc, profile, count);
    // Greys are the same in both.
    if (isShaper && !icc->grey) tern_icc_set_target(icc, target);
    *plain = isShaper && tern_icc_is_plain(icc);
    if (!*plain && (isShaper || open(icc, profile, count, ink, target))) return icc;
    tern_icc_close(icc);
    return NULL;
}

void tern_icc_convert(const tern_icc *icc, uint8_t *pixels, size_t stride, uint32_t width, uint32_t rows) {
    for (uint32_t y = 0; y < rows; y++) {
        uint8_t *row = pixels + stride * y;
        // Converts in place. lcms2 leaves the fourth byte unchanged.
        if (icc->transform && !icc->grey) {
            library.run(icc->transform, row, row, width);
            continue;
        }
        for (uint32_t x = 0; x < width; x++, row += 4) {
            if (icc->grey) memcpy(row, icc->greys[row[0]], 3);
            else shape(icc, row);
        }
    }
}

void tern_icc_ink(const tern_icc *icc, const uint8_t *ink, uint8_t *pixels, uint32_t width) {
    library.run(icc->transform, ink, pixels, width);
    for (uint32_t x = 0; x < width; x++) pixels[(size_t)x * 4 + 3] = 255;
}

/// Returns the entry of a table for a value from 0 to 1, interpolated.
static inline float between(const float table[TERN_FINE_STEPS + 1], float value) {
    const float place = value * TERN_FINE_STEPS;
    const int low = place < TERN_FINE_STEPS ? (int)place : TERN_FINE_STEPS - 1;
    return table[low] + (table[low + 1] - table[low]) * (place - (float)low);
}

/// Does the same as `tone` for the values of a pixel of more than 8 bits.
static inline float fineTone(const tern_icc *icc, const float *values, float r, float g, float b) {
    const tern_fine *fine = icc->fine;
    if (icc->tones == TERN_TONES_PQ) {
        const float most = values[0] > values[1] ? values[0] : values[1];
        return between(fine->peaks, most > values[2] ? most : values[2]);
    }
    const float luminance = 0.2627f * r + 0.6780f * g + 0.0593f * b;
    const float system = between(fine->luminances, sqrtf(luminance < 1 ? luminance : 1));
    const float most = r > g ? r : g, light = (most > b ? most : b) * system;
    return system * between(fine->brightest, sqrtf(light < 1 ? light : 1));
}

static void convertFine(const tern_icc *icc, const float *values, uint8_t *target, size_t pixels) {
    const tern_fine *fine = icc->fine;
    for (size_t i = 0; i < pixels * 4; i += 4) {
        float value[3];
        for (int c = 0; c < 3; c++) value[c] = values[i + c] > 0 ? values[i + c] < 1 ? values[i + c] : 1 : 0;
        const float alpha = values[i + 3];
        target[i + 3] = (uint8_t)((alpha > 0 ? alpha < 1 ? alpha : 1 : 0) * 255 + 0.5f);
        if (icc->grey) {
            const uint8_t grey = icc->transform ? icc->greys[(int)(value[0] * 255 + 0.5f)][0]
                : level(between(fine->lights[0], value[0]) * STEPS);
            memset(target + i, grey, 3);
        } else if (fine->transform) {
            uint16_t pixel[4] = {0, 0, 0, UINT16_MAX};
            uint8_t converted[4];
            for (int c = 0; c < 3; c++) pixel[c] = (uint16_t)(value[c] * UINT16_MAX + 0.5f);
            library.run(fine->transform, pixel, converted, 1);
            memcpy(target + i, converted, 3);
        } else {
            float light[3];
            for (int c = 0; c < 3; c++) light[c] = between(fine->lights[c], value[c]);
            const float factor =
                icc->tones == TERN_TONES_NONE ? 1 : fineTone(icc, value, light[0], light[1], light[2]);
            for (int c = 0; c < 3; c++)
                target[i + c] = level(
                    (icc->mix[c][0] * light[0] + icc->mix[c][1] * light[1] + icc->mix[c][2] * light[2]) * factor);
        }
    }
}

void tern_icc_convert_deep(
    const tern_icc *icc, const uint8_t *source, tern_samples samples, bool isPremultiplied, uint8_t *target,
    size_t pixels) {
    enum { MOST = 64 };
    uint8_t part[MOST * 8];
    float values[MOST * 4];
    for (size_t done = 0; done < pixels; done += MOST) {
        const size_t count = pixels - done < MOST ? pixels - done : MOST;
        memcpy(part, source + done * 8, count * 8);
        if (isPremultiplied) tern_unpremultiply_deep(part, samples, count);
        if (icc) {
            tern_load_samples(part, samples, values, count * 4);
            convertFine(icc, values, target + done * 4, count);
        } else {
            tern_convert_samples(part, samples, target + done * 4, TERN_SAMPLES_BYTES, count * 4);
        }
    }
}

void tern_icc_close(tern_icc *icc) {
    if (!icc) return;
    if (icc->transform) library.delete(icc->transform);
    if (icc->fine && icc->fine->transform) library.delete(icc->fine->transform);
    free(icc->fine);
    free(icc);
}
#endif
