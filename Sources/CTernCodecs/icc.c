// ICC profiles to sRGB by lcms2, looked for when the first profile comes that is not sRGB itself.
#include "CTernCodecs.h"

#if defined(__linux__)
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Of <lcms2.h>: its functions and numbers have been the same since 2.0 (2009), all structures are opaque.
enum { GREY_8 = 0x30009, RGB_8 = 0x40019, RGBA_8 = 0x40099, CMYK_8_REVERSED = 0x62021 };
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

/// The data of a tag of at least a size, NULL if it is not there.
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

/// The light for a value from 0 to 1 by a curve (ICC.1:2022 §10.6, §10.18), below 0 if it is of no known kind.
static double light(const uint8_t *curve, size_t size, double value) {
    size_t points = be32(curve + 8);
    if (!memcmp(curve, "curv", 4)) {
        if (points == 0) return value;
        if (points > (size - 12) / 2) return -1;
        if (points == 1) return pow(value, be16(curve + 12) / 256.0);
        double at = value * (double)(points - 1);
        size_t low = (size_t)at, high = low + 1 < points ? low + 1 : low;
        double a = be16(curve + 12 + low * 2) / 65535.0, b = be16(curve + 12 + high * 2) / 65535.0;
        return a + (b - a) * (at - (double)low);
    }
    static const unsigned counts[] = {1, 3, 4, 5, 7};
    unsigned kind = be16(curve + 8);
    if (memcmp(curve, "para", 4) || kind > 4 || size < 12 + counts[kind] * 4) return -1;
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

/// Whether a curve comes within one level of 255 of sRGB's.
static bool isPlainCurve(const uint8_t *profile, size_t count, const char *name) {
    size_t size = 0;
    const uint8_t *curve = tag(profile, count, name, 14, &size);
    for (int i = 0; curve && i <= 32; i++) {
        double value = i / 32.0, linear = light(curve, size, value);
        if (!(linear >= 0)) return false;
        double encoded = linear <= 0.0031308 ? linear * 12.92 : 1.055 * pow(linear, 1 / 2.4) - 0.055;
        if (!(fabs(encoded - value) <= 1 / 255.0)) return false;
    }
    return curve != NULL;
}

/// Whether colours of the profile are those of sRGB, by its primaries and curves.
static bool isPlain(const uint8_t *profile, size_t count) {
    if (!memcmp(profile + 16, "GRAY", 4)) return isPlainCurve(profile, count, "kTRC");
    static const char *const names[] = {"rXYZ", "gXYZ", "bXYZ"}, *const curves[] = {"rTRC", "gTRC", "bTRC"};
    static const double primaries[3][3] = {
        {0.4360, 0.2225, 0.0139}, {0.3851, 0.7169, 0.0971}, {0.1431, 0.0606, 0.7141}};
    size_t size = 0;
    if (memcmp(profile + 16, "RGB XYZ ", 8) || tag(profile, count, "A2B0", 0, &size)) return false;
    for (int i = 0; i < 3; i++) {
        const uint8_t *point = tag(profile, count, names[i], 20, &size);
        for (int c = 0; c < 3; c++)
            if (!point || fabs(fixed(point + 8 + c * 4) - primaries[i][c]) > 0.002) return false;
        if (!isPlainCurve(profile, count, curves[i])) return false;
    }
    return true;
}

struct tern_icc {
    void *transform;
    // Of a grey profile: what each level becomes.
    bool grey;
    uint8_t levels[256][3];
};

tern_icc *tern_icc_open(const uint8_t *profile, size_t count, int channels, bool *plain) {
    *plain = false;
    // The largest profiles in use, of presses, have 6 MB.
    if (count < 132 || count > 8 << 20 || memcmp(profile + 36, "acsp", 4)) return NULL;
    bool ink = channels == TERN_CHANNELS_INK;
    bool grey = !memcmp(profile + 16, "GRAY", 4);
    bool fits = ink ? !memcmp(profile + 16, "CMYK", 4)
        : (grey && channels == TERN_CHANNELS_GREY) || !memcmp(profile + 16, "RGB ", 4);
    if (!fits) return NULL;
    // Of a display, an input or output device, a colour space; not a link or an effect.
    const uint8_t *class = profile + 12;
    if (memcmp(class, "mntr", 4) && memcmp(class, "scnr", 4) && memcmp(class, "prtr", 4) && memcmp(class, "spac", 4))
        return NULL;
    *plain = !ink && isPlain(profile, count);
    if (*plain || !tern_icc_available()) return NULL;
    void *from = library.open(profile, (uint32_t)count), *to = library.sRGB();
    tern_icc *color = calloc(1, sizeof *color);
    if (from && to && color) {
        uint32_t input = ink ? CMYK_8_REVERSED : grey ? GREY_8 : RGBA_8;
        color->transform = library.create(from, input, to, grey ? RGB_8 : RGBA_8, PERCEPTUAL, 0);
        color->grey = grey;
    }
    if (from) library.close(from);
    if (to) library.close(to);
    if (!color || !color->transform) {
        free(color);
        return NULL;
    }
    if (grey) {
        uint8_t each[256];
        for (int i = 0; i < 256; i++) each[i] = (uint8_t)i;
        library.run(color->transform, each, color->levels, 256);
    }
    return color;
}

void tern_icc_convert(const tern_icc *color, uint8_t *pixels, size_t stride, uint32_t width, uint32_t rows) {
    for (uint32_t y = 0; y < rows; y++) {
        uint8_t *row = pixels + stride * y;
        // In place: lcms2 leaves the fourth byte as it is.
        if (!color->grey) library.run(color->transform, row, row, width);
        for (uint32_t x = 0; color->grey && x < width; x++)
            memcpy(row + (size_t)x * 4, color->levels[row[(size_t)x * 4]], 3);
    }
}

void tern_icc_ink(const tern_icc *color, const uint8_t *ink, uint8_t *pixels, uint32_t width) {
    library.run(color->transform, ink, pixels, width);
    for (uint32_t x = 0; x < width; x++) pixels[(size_t)x * 4 + 3] = 255;
}

void tern_icc_close(tern_icc *color) {
    if (!color) return;
    library.delete(color->transform);
    free(color);
}
#endif
