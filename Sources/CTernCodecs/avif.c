// Decodes AVIF with libavif, which is loaded when the first AVIF file arrives. libavif and its codecs are 20 MB of
// libraries that few programs need.
#include "avif_layout.h"

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECODER_HEAD                                                                                                  \
    int codec, maxThreads, source, allowProgressive, allowIncremental, ignoreExif, ignoreXMP;                         \
    uint32_t sizeLimit, dimensionLimit, countLimit, strictFlags;                                                      \
    image0 *image;                                                                                                    \
    int index, count, progressive;                                                                                    \
    struct { uint64_t timescale; double time; uint64_t times; double duration; uint64_t durations; } timing;          \
    uint64_t timescale;                                                                                               \
    double duration;                                                                                                  \
    uint64_t durations;
typedef struct { DECODER_HEAD int hasAlpha; size_t stats[2]; char diagnosis[256]; } decoder0;
typedef struct { DECODER_HEAD int repetitions, hasAlpha; size_t stats[2]; char diagnosis[256]; } decoder1;

enum { HAS_ROTATION = 4, HAS_MIRROR = 8, NEEDS_PIXI = 1, NEEDS_VALID_APERTURE = 2 };
enum { TRUNCATED = 20, NOT_IMPLEMENTED = 25 };

typedef struct {
    bool modern;
    void *handle;
    decoder0 *(*create)(void);
    void (*destroy)(decoder0 *);
    int (*setMemory)(decoder0 *, const uint8_t *, size_t);
    int (*parse)(decoder0 *), (*next)(decoder0 *);
    void (*defaults)(rgb *, const image0 *);
    int (*convert)(const image0 *, rgb *);
    const char *(*text)(int);
} functions;

static functions library;
static char missing[160];

/// Loads a library. If the library cannot be used, sets `obstacle` to the reason. Returns whether the library is
/// present.
static bool load(const char *name, functions *into, char *obstacle) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(obstacle, 160, "install libavif: the Debian package libavif16 or libavif15 (Fedora: libavif)");
        return false;
    }
    const char *(*version)(void) = (const char *(*)(void))dlsym(handle, "avifVersion");
    const char *text = version ? version() : "of no version";
    into->modern = !strncmp(text, "1.", 2);
    bool known = into->modern || !strncmp(text, "0.11.", 5);
    const struct { const char *name; void *place; } symbols[] = {
        {"avifDecoderCreate", &into->create}, {"avifDecoderDestroy", &into->destroy},
        {"avifDecoderSetIOMemory", &into->setMemory}, {"avifDecoderParse", &into->parse},
        {"avifDecoderNextImage", &into->next}, {"avifRGBImageSetDefaults", &into->defaults},
        {"avifImageYUVToRGB", &into->convert}, {"avifResultToString", &into->text},
    };
    for (size_t i = 0; known && i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        memcpy(symbols[i].place, &symbol, sizeof symbol);
        known = symbol != NULL;
    }
    obstacle[0] = 0;
    into->handle = handle;
    if (!known) {
        snprintf(
            obstacle, 160, "libavif %.20s is not 0.11 or 1.x: install the Debian package libavif16 or libavif15", text);
        dlclose(handle);
    }
    return true;
}

static void loadOnce(void) {
    if (!load("libavif.so.16", &library, missing)) load("libavif.so.15", &library, missing);
}

const char *tern_avif_obstacle(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return missing[0] ? missing : NULL;
}

void *tern_avif_symbol(const char *name) { return tern_avif_obstacle() ? NULL : dlsym(library.handle, name); }

bool tern_avif_is_modern(void) { return library.modern; }

void tern_avif_look(const char *name, char *obstacle) {
    functions ignored;
    load(name, &ignored, obstacle);
}

struct tern_avif {
    const uint8_t *bytes;
    size_t count;
    uint32_t pixelLimit, frameLimit;
    bool isDeep;
    // NULL after an error of `start` for lack of memory.
    decoder0 *decoder;
};

static tern_codec_result translate(const tern_avif *avif, int result, char *error) {
    const char *diagnosis = library.modern ? ((decoder1 *)avif->decoder)->diagnosis : avif->decoder->diagnosis;
    snprintf(error, 160, "%.60s%s%.80s", library.text(result), diagnosis[0] ? ": " : "", diagnosis);
    switch (result) {
    case OK: return TERN_CODEC_OK;
    case TRUNCATED: return TERN_CODEC_TRUNCATED;
    case OUT_OF_MEMORY: return TERN_CODEC_MEMORY;
    case NO_CODEC: case NOT_IMPLEMENTED: case UNSUPPORTED_DEPTH: return TERN_CODEC_UNSUPPORTED;
    default: break;
    }
    // The error for boxes that point beyond the end of the file.
    if (strstr(diagnosis, "runcated data")) return TERN_CODEC_TRUNCATED;
    bool limited = strstr(diagnosis, "imageCountLimit") || strstr(diagnosis, "too large");
    return limited ? TERN_CODEC_SCANS : TERN_CODEC_CORRUPT;
}

/// Returns the bytes of the planes with the size in the file's header, once for libavif and once for the AV1 decoder,
/// which shows one frame while it works on the next. The AV1 decoder keeps up to eight for the frames of a sequence.
static uint64_t memory(const image0 *image, bool hasAlpha, int frames) {
    static const unsigned halves[] = {2, 6, 4, 3, 2};
    unsigned format = image->format >= 0 && image->format <= MONOCHROME ? (unsigned)image->format : 1;
    uint64_t pixels = (uint64_t)image->width * image->height, bytes = image->depth > 8 ? 2 : 1;
    uint64_t planes = pixels * bytes * (halves[format] + (hasAlpha ? 2 : 0)) / 2;
    return planes * (frames > 1 ? 9 : 2) + (16 << 20);
}

/// Returns the orientation in EXIF's numbers. The picture is turned counterclockwise first, and then mirrored (ISO/IEC
/// 23000-22 §7.3.6.7).
static int orientation(const transforms *transforms) {
    static const int numbers[4][3] = {{1, 4, 2}, {8, 5, 7}, {3, 2, 4}, {6, 7, 5}};
    int angle = transforms->flags & HAS_ROTATION ? transforms->angle & 3 : 0;
    return numbers[angle][transforms->flags & HAS_MIRROR ? 1 + (transforms->axis & 1) : 0];
}

/// Reads the file's header with a new decoder of libavif, whose next image is the first one.
///
/// avifDecoderReset would do the same with less work. It is not called, because pictures of some files are lost with
/// libavif 1.4 if it is called after avifDecoderParse.
static tern_codec_result start(tern_avif *avif, char *error) {
    if (avif->decoder) library.destroy(avif->decoder);
    decoder0 *decoder = avif->decoder = library.create();
    if (!decoder) {
        snprintf(error, 160, "no memory for a decoder");
        return TERN_CODEC_MEMORY;
    }
    decoder->ignoreExif = decoder->ignoreXMP = 1;
    // The limit also holds for the AV1 stream, which may be larger than the file's header states. libavif's own limit
    // is the highest possible one.
    if (avif->pixelLimit < decoder->sizeLimit) decoder->sizeLimit = avif->pixelLimit > 0 ? avif->pixelLimit : 1;
    decoder->countLimit = avif->frameLimit < UINT32_MAX ? avif->frameLimit + 1 : avif->frameLimit;
    // Like browsers, accepts files without these properties, because such files are in use.
    decoder->strictFlags &= ~(uint32_t)(NEEDS_PIXI | NEEDS_VALID_APERTURE);
    int taken = library.setMemory(decoder, avif->bytes, avif->count);
    return translate(avif, taken == OK ? library.parse(decoder) : taken, error);
}

tern_avif *tern_avif_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error) {
    *result = TERN_CODEC_UNSUPPORTED;
    const char *obstacle = tern_avif_obstacle();
    if (obstacle) {
        snprintf(error, 160, "%s", obstacle);
        return NULL;
    }
    tern_avif *avif = calloc(1, sizeof *avif);
    *result = TERN_CODEC_MEMORY;
    if (!avif) return NULL;
    avif->bytes = bytes;
    avif->count = count;
    avif->pixelLimit = limits.pixels < UINT32_MAX ? (uint32_t)limits.pixels : UINT32_MAX;
    avif->frameLimit = limits.frames;
    *result = start(avif, error);
    if (*result != TERN_CODEC_OK) { tern_avif_close(avif); return NULL; }
    // The AV1 stream must not hold larger frames than the header states, whatever the limit is.
    const uint64_t pixels = (uint64_t)avif->decoder->image->width * avif->decoder->image->height;
    if (pixels * 2 + 65536 < avif->decoder->sizeLimit) {
        avif->pixelLimit = (uint32_t)(pixels * 2 + 65536);
        *result = start(avif, error);
        if (*result != TERN_CODEC_OK) { tern_avif_close(avif); return NULL; }
    }
    const decoder0 *decoder = avif->decoder;
    const image0 *image = decoder->image;
    const transforms *shown = library.modern ? &((const image1 *)image)->transforms : &image->transforms;
    const bool hasAlpha = (library.modern ? ((const decoder1 *)decoder)->hasAlpha : decoder->hasAlpha) != 0;
    *info = (tern_codec_info){
        .width = image->width, .height = image->height, .orientation = orientation(shown), .hasAlpha = hasAlpha,
        .memory = memory(image, hasAlpha, decoder->count),
        .hasProfile = image->icc.size > 0, .hasColor = image->icc.size == 0,
        .color = {.primaries = image->primaries ? image->primaries : 2, .transfer = image->transfer ? image->transfer : 2},
        .frameCount = (uint32_t)decoder->count};
    avif->isDeep = info->isDeep = tern_is_deep(limits, image->depth, info);
    if (library.modern) info->color.peak = ((const image1 *)image)->light[0];
    // The sequence plays once, plus the number of repetitions. A number below 0 means endless.
    int repetitions = library.modern ? ((const decoder1 *)decoder)->repetitions : -1;
    if (repetitions >= 0 && repetitions < INT32_MAX) info->loopCount = (uint32_t)repetitions + 1;
    return avif;
}

const uint8_t *tern_avif_profile(const tern_avif *avif, size_t *count, int *channels) {
    const image0 *image = avif->decoder->image;
    *count = image->icc.size;
    *channels = image->format == MONOCHROME ? TERN_CHANNELS_GREY : TERN_CHANNELS_RGB;
    return image->icc.size > 0 ? image->icc.data : NULL;
}

tern_codec_result tern_avif_next(tern_avif *avif, tern_canvas canvas, uint64_t *microseconds, char *error) {
    if (!avif->decoder) return TERN_CODEC_MEMORY;
    tern_codec_result result = translate(avif, library.next(avif->decoder), error);
    if (result != TERN_CODEC_OK) return result;
    const image0 *image = avif->decoder->image;
    if (!tern_canvas_fits(canvas, image->width, image->height, error)) return TERN_CODEC_CORRUPT;
    rgb target;
    memset(&target, 0, sizeof target);
    library.defaults(&target, image);
    if (avif->isDeep && canvas.stride < (size_t)image->width * 8) return TERN_CODEC_CORRUPT;
    target.zero.depth = avif->isDeep ? 16 : 8;
    target.zero.format = RGBA;
    target.zero.premultiplied = 0;
    if (library.modern) {
        target.one.pixels = canvas.pixels;
        target.one.rowBytes = (uint32_t)canvas.stride;
    } else {
        target.zero.pixels = canvas.pixels;
        target.zero.rowBytes = (uint32_t)canvas.stride;
    }
    double duration = avif->decoder->timing.duration;
    *microseconds = duration > 0 && duration < 1e9 ? (uint64_t)(duration * 1e6 + 0.5) : 0;
    return translate(avif, library.convert(image, &target), error);
}

tern_codec_result tern_avif_rewind(tern_avif *avif, char *error) { return start(avif, error); }

void tern_avif_close(tern_avif *avif) {
    if (!avif) return;
    if (avif->decoder) library.destroy(avif->decoder);
    free(avif);
}
#endif
