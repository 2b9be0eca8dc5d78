// Decodes HEIC with libheif, which is loaded when the first HEIC file arrives, and which uses a decoder of HEVC that Tern
// makes of libde265. Files are surveyed first.
#include "heif_survey.h"

#if defined(__linux__)
#include "heif_plugin.h"
#include "loaded.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Declarations from <libheif/heif.h> 1.12 to 1.21, whose layout belongs to libheif.so.1.
typedef struct context context;
typedef struct handle handle;
typedef struct image image;
typedef struct {
    int code, detail;
    const char *text;
} outcome;
typedef struct {
    uint8_t version, ignoresTransformations;
    void (*start)(int, int, void *), (*progress)(int, int, void *), (*end)(int, void *);
    void *user;
    // Since version 2 of the structure, and since version 3.
    uint8_t makes8Bits, isStrict;
    // Later members follow.
} decoding;
typedef struct {
    uint8_t version;
    uint64_t pixels;
    // Later members follow.
} security;

enum { OK = 0, UNSUPPORTED_FILE = 3, UNSUPPORTED_FEATURE = 4, NO_MEMORY = 6, PLUGIN_LOADING = 11 };
enum { END_OF_DATA = 100, SECURITY_LIMIT = 1000 };
enum { RGB = 1, INTERLEAVED_RGBA = 11, INTERLEAVED = 10 };

static struct {
    context *(*newContext)(void);
    void (*freeContext)(context *), (*limitSize)(context *, int);
    outcome (*read)(context *, const void *, size_t, const void *), (*primary)(context *, handle **);
    void (*release)(const handle *);
    int (*width)(const handle *), (*height)(const handle *), (*hasAlpha)(const handle *);
    int (*isPremultiplied)(const handle *);
    size_t (*profileSize)(const handle *);
    outcome (*profile)(const handle *, void *);
    decoding *(*newDecoding)(void);
    void (*freeDecoding)(decoding *);
    outcome (*decode)(const handle *, image **, int, int, const decoding *);
    int (*imageWidth)(const image *, int), (*imageHeight)(const image *, int);
    const uint8_t *(*plane)(const image *, int, int *);
    void (*releaseImage)(const image *);
    // NULL before version 1.13, and before 1.19.
    void (*limitThreads)(context *, int);
    security *(*limits)(context *);
    char obstacle[160];
} library;

static void loadOnce(void) {
    static const char *const names[] = {"libheif.so.1"};
    const tern_symbol symbols[] = {
        {"heif_context_alloc", &library.newContext}, {"heif_context_free", &library.freeContext},
        {"heif_context_set_maximum_image_size_limit", &library.limitSize},
        {"heif_context_read_from_memory_without_copy", &library.read},
        {"heif_context_get_primary_image_handle", &library.primary}, {"heif_image_handle_release", &library.release},
        {"heif_image_handle_get_width", &library.width}, {"heif_image_handle_get_height", &library.height},
        {"heif_image_handle_has_alpha_channel", &library.hasAlpha},
        {"heif_image_handle_is_premultiplied_alpha", &library.isPremultiplied},
        {"heif_image_handle_get_raw_color_profile_size", &library.profileSize},
        {"heif_image_handle_get_raw_color_profile", &library.profile},
        {"heif_decoding_options_alloc", &library.newDecoding},
        {"heif_decoding_options_free", &library.freeDecoding}, {"heif_decode_image", &library.decode},
        {"heif_image_get_width", &library.imageWidth}, {"heif_image_get_height", &library.imageHeight},
        {"heif_image_get_plane_readonly", &library.plane}, {"heif_image_release", &library.releaseImage},
    };
    void *handle = tern_load(
        names, 1, symbols, sizeof symbols / sizeof *symbols,
        "install libheif 1.12 or later: the Debian package libheif1 (Fedora: libheif)", library.obstacle);
    if (!handle) return;
    const tern_symbol others[] = {
        {"heif_context_set_max_decoding_threads", &library.limitThreads},
        {"heif_context_get_security_limits", &library.limits},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        void *symbol = dlsym(handle, others[i].name);
        memcpy(others[i].place, &symbol, sizeof symbol);
    }
    // Never undone, so that the plugins stay when another user of libheif ends its use.
    outcome (*start)(void *) = NULL;
    void *symbol = dlsym(handle, "heif_init");
    memcpy(&start, &symbol, sizeof symbol);
    if (start) start(NULL);
    tern_heif_register(handle, library.obstacle);
}

const char *tern_heif_obstacle(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return library.obstacle[0] ? library.obstacle : NULL;
}

struct tern_heif {
    context *context;
    handle *handle;
    uint8_t *profile;
    size_t profileCount;
    bool isGrey, isPremultiplied;
};

static tern_codec_result translate(outcome outcome, char *error) {
    if (outcome.code == OK) return TERN_CODEC_OK;
    snprintf(error, 160, "%.150s", outcome.text ? outcome.text : "");
    if (outcome.detail == END_OF_DATA) return TERN_CODEC_TRUNCATED;
    if (outcome.detail == SECURITY_LIMIT) return TERN_CODEC_LIMIT;
    switch (outcome.code) {
    case UNSUPPORTED_FILE: case UNSUPPORTED_FEATURE: case PLUGIN_LOADING: return TERN_CODEC_UNSUPPORTED;
    case NO_MEMORY: return TERN_CODEC_MEMORY;
    default: return TERN_CODEC_CORRUPT;
    }
}

/// Returns the bytes that libheif and the HEVC decoder take besides the canvas: the planes of each, those of the steps
/// to RGBA, and the data of the pictures.
static uint64_t memory(const tern_heif_survey *survey, size_t count) {
    const bool isDeep = survey->isDeep;
    unsigned each = isDeep ? 13 : 7;
    if (survey->isFine) each += 3;
    if (survey->hasAlpha) each += isDeep ? 3 : 1;
    if (survey->isOverlay) each += 4;
    return survey->largest * each + (uint64_t)count + survey->metadata + (4 << 20);
}

static tern_codec_result open(
    tern_heif *heif, const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info,
    char *error) {
    tern_heif_survey survey;
    tern_codec_result result = tern_heif_walk(bytes, count, limits.pixels, &survey, error);
    if (result != TERN_CODEC_OK) return result;
    if (survey.metadata > limits.memory) {
        snprintf(error, 160, "its metadata takes up to %llu MiB of memory", (unsigned long long)survey.metadata >> 20);
        return TERN_CODEC_LIMIT;
    }
    heif->context = library.newContext();
    if (!heif->context) return TERN_CODEC_MEMORY;
    // A side in some versions, and the root of the number of pixels in others.
    const uint64_t most = tern_heif_most(limits.pixels);
    library.limitSize(heif->context, most < INT32_MAX ? (int)most : INT32_MAX);
    if (library.limitThreads) library.limitThreads(heif->context, 0);
    security *limit = library.limits ? library.limits(heif->context) : NULL;
    if (limit) limit->pixels = most;
    result = translate(library.read(heif->context, bytes, count, NULL), error);
    if (result == TERN_CODEC_OK) result = translate(library.primary(heif->context, &heif->handle), error);
    if (result != TERN_CODEC_OK) return result;
    const int width = library.width(heif->handle), height = library.height(heif->handle);
    heif->isGrey = survey.isGrey;
    heif->isPremultiplied = library.isPremultiplied(heif->handle) != 0;
    const size_t profile = library.profileSize(heif->handle);
    if (profile > 0 && profile <= count) {
        heif->profile = malloc(profile);
        if (!heif->profile) return TERN_CODEC_MEMORY;
        if (library.profile(heif->handle, heif->profile).code == OK) heif->profileCount = profile;
    }
    *info = (tern_codec_info){
        .width = width > 0 ? (uint32_t)width : 0, .height = height > 0 ? (uint32_t)height : 0, .orientation = 1,
        .hasAlpha = library.hasAlpha(heif->handle) != 0, .frameCount = 1,
        .hasProfile = profile > 0, .hasColor = profile == 0, .color = survey.color,
        .memory = memory(&survey, count),
    };
    return TERN_CODEC_OK;
}

tern_heif *tern_heif_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error) {
    *result = TERN_CODEC_UNSUPPORTED;
    const char *obstacle = tern_heif_obstacle();
    if (obstacle) {
        snprintf(error, 160, "%s", obstacle);
        return NULL;
    }
    tern_heif *heif = calloc(1, sizeof *heif);
    *result = TERN_CODEC_MEMORY;
    if (!heif) return NULL;
    *result = open(heif, bytes, count, limits, info, error);
    if (*result == TERN_CODEC_OK) return heif;
    tern_heif_close(heif);
    return NULL;
}

const uint8_t *tern_heif_profile(const tern_heif *heif, size_t *count, int *channels) {
    *count = heif->profileCount;
    *channels = heif->isGrey ? TERN_CHANNELS_GREY : TERN_CHANNELS_RGB;
    return heif->profileCount > 0 ? heif->profile : NULL;
}

tern_codec_result tern_heif_decode(tern_heif *heif, tern_canvas canvas, char *error) {
    decoding *options = library.newDecoding();
    if (!options) return TERN_CODEC_MEMORY;
    if (options->version >= 2) options->makes8Bits = 1;
    if (options->version >= 3) options->isStrict = 1;
    image *image = NULL;
    tern_heif_claim(true);
    tern_codec_result result = translate(library.decode(heif->handle, &image, RGB, INTERLEAVED_RGBA, options), error);
    tern_heif_claim(false);
    library.freeDecoding(options);
    if (result != TERN_CODEC_OK) return result;
    // The HEVC stream can have another size than the header.
    const int width = library.imageWidth(image, INTERLEAVED), height = library.imageHeight(image, INTERLEAVED);
    int stride = 0;
    const uint8_t *pixels = library.plane(image, INTERLEAVED, &stride);
    const size_t row = (size_t)canvas.width * 4;
    if (width < 0 || height < 0 || !tern_canvas_fits(canvas, (uint32_t)width, (uint32_t)height, error)) {
        result = TERN_CODEC_CORRUPT;
    } else if (!pixels || stride < 0 || (size_t)stride < row) {
        result = TERN_CODEC_CORRUPT;
    } else {
        for (size_t y = 0; y < canvas.height; y++) {
            const uint8_t *source = pixels + y * (size_t)stride;
            uint8_t *target = canvas.pixels + y * canvas.stride;
            if (heif->isPremultiplied) tern_unpremultiply(source, target, canvas.width);
            else memcpy(target, source, row);
        }
    }
    library.releaseImage(image);
    return result;
}

void tern_heif_close(tern_heif *heif) {
    if (!heif) return;
    if (heif->handle) library.release(heif->handle);
    if (heif->context) library.freeContext(heif->context);
    free(heif->profile);
    free(heif);
}
#endif
