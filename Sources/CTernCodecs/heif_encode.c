// Encodes HEIC with the encoder of HEVC that libheif has, if it has one.
#include "CTernCodecs.h"

#if defined(__linux__)
#include "loaded.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Declarations from <libheif/heif.h> 1.12 to 1.21, whose layout belongs to libheif.so.1.
typedef struct context context;
typedef struct image image;
typedef struct encoder encoder;
typedef struct { int code, detail; const char *text; } outcome;
typedef struct { uint8_t version; int primaries, transfer, matrix; uint8_t isFull; } numbers;
typedef struct {
    // The last members of versions 1, 2 and 3, and those of version 4.
    uint8_t version, savesAlpha, wrapsSmall, savesBoth;
    numbers *numbers;
    uint8_t leavesNumbers;
    // Later members follow.
} options;
typedef struct { int version; outcome (*write)(context *, const void *, size_t, void *); } writer;

enum { OK = 0, HEVC = 1, RGB = 1, INTERLEAVED_RGB = 10, INTERLEAVED_RGBA = 11, INTERLEAVED = 10 };
// The code points of sRGB, and of the matrix that its pictures usually have (ITU-T H.273).
enum { BT709 = 1, SRGB = 13, BT601 = 6 };

static struct {
    context *(*newContext)(void);
    void (*freeContext)(context *);
    outcome (*find)(context *, int, encoder **);
    void (*releaseEncoder)(encoder *);
    outcome (*setQuality)(encoder *, int), (*setText)(encoder *, const char *, const char *);
    outcome (*create)(int, int, int, int, image **), (*addPlane)(image *, int, int, int, int);
    uint8_t *(*plane)(image *, int, int *);
    void (*release)(const image *);
    numbers *(*newNumbers)(void);
    void (*freeNumbers)(numbers *);
    outcome (*setNumbers)(image *, const numbers *);
    options *(*newOptions)(void);
    void (*freeOptions)(options *);
    outcome (*encode)(context *, const image *, encoder *, const options *, void **);
    outcome (*write)(context *, writer *, void *);
    char obstacle[160];
} library;

static void loadOnce(void) {
    static const char *const names[] = {"libheif.so.1"};
    const tern_symbol symbols[] = {
        {"heif_context_alloc", &library.newContext}, {"heif_context_free", &library.freeContext},
        {"heif_context_get_encoder_for_format", &library.find}, {"heif_encoder_release", &library.releaseEncoder},
        {"heif_encoder_set_lossy_quality", &library.setQuality},
        {"heif_encoder_set_parameter_string", &library.setText}, {"heif_image_create", &library.create},
        {"heif_image_add_plane", &library.addPlane}, {"heif_image_get_plane", &library.plane},
        {"heif_image_release", &library.release}, {"heif_nclx_color_profile_alloc", &library.newNumbers},
        {"heif_nclx_color_profile_free", &library.freeNumbers},
        {"heif_image_set_nclx_color_profile", &library.setNumbers},
        {"heif_encoding_options_alloc", &library.newOptions}, {"heif_encoding_options_free", &library.freeOptions},
        {"heif_context_encode_image", &library.encode}, {"heif_context_write", &library.write},
    };
    void *handle = tern_load(
        names, 1, symbols, sizeof symbols / sizeof *symbols,
        "install libheif 1.12 or later: the Debian package libheif1 (Fedora: libheif)", library.obstacle);
    if (!handle) return;
    // Finds the plugins, which a later version does only once it is told to.
    outcome (*start)(void *) = NULL;
    void *symbol = dlsym(handle, "heif_init");
    memcpy(&start, &symbol, sizeof symbol);
    if (start) start(NULL);
    context *context = library.newContext();
    encoder *encoder = NULL;
    if (context && library.find(context, HEVC, &encoder).code == OK && encoder) {
        library.releaseEncoder(encoder);
    } else {
        snprintf(
            library.obstacle, sizeof library.obstacle,
            "this libheif has no encoder of HEVC: install the Debian package libheif-plugin-x265 (Fedora: "
            "libheif-freeworld)");
    }
    if (context) library.freeContext(context);
}

const char *tern_heif_writer_obstacle(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return library.obstacle[0] ? library.obstacle : NULL;
}

/// Returns the picture as libheif takes it, or NULL when memory is short.
static image *makeImage(const tern_heif_settings *settings, const uint8_t *pixels, size_t stride) {
    const size_t width = settings->width, channels = settings->isOpaque ? 3 : 4;
    image *image = NULL;
    if (library.create(
        (int)width, (int)settings->height, RGB, settings->isOpaque ? INTERLEAVED_RGB : INTERLEAVED_RGBA, &image)
        .code != OK) return NULL;
    int row = 0;
    uint8_t *to = NULL;
    if (library.addPlane(image, INTERLEAVED, (int)width, (int)settings->height, 8).code == OK)
        to = library.plane(image, INTERLEAVED, &row);
    if (!to || row < 0 || (size_t)row < width * channels) {
        library.release(image);
        return NULL;
    }
    for (size_t y = 0; y < settings->height; y++) {
        const uint8_t *source = pixels + y * stride;
        uint8_t *target = to + y * (size_t)row;
        if (settings->isOpaque) for (size_t x = 0; x < width; x++) memcpy(target + x * 3, source + x * 4, 3);
        else memcpy(target, source, width * 4);
    }
    return image;
}

typedef struct { uint8_t *bytes; size_t count; } output;

static outcome append(context *context, const void *bytes, size_t count, void *user) {
    (void)context;
    output *output = user;
    uint8_t *grown = realloc(output->bytes, output->count + count);
    if (!grown) return (outcome){6, 0, "no memory"};
    memcpy(grown + output->count, bytes, count);
    output->bytes = grown;
    output->count += count;
    return (outcome){OK, 0, ""};
}

/// Sets the quality and the speed. An encoder other than x265 keeps its own speed.
static void tune(encoder *encoder, const tern_heif_settings *settings) {
    static const char *const presets[] = {
        "veryslow", "slower", "slow", "medium", "fast", "fast", "faster", "faster", "veryfast", "superfast",
        "ultrafast",
    };
    library.setQuality(encoder, settings->quality);
    library.setText(encoder, "preset", presets[settings->speed < 0 ? 0 : settings->speed > 10 ? 10 : settings->speed]);
    // Colours at half the size are not seen, except at a high quality.
    library.setText(encoder, "chroma", settings->quality >= 90 ? "444" : "420");
    library.setText(encoder, "x265:pools", "none");
    library.setText(encoder, "x265:frame-threads", "1");
    // Without it, x265 3.5 leaks the memory of this filter.
    library.setText(encoder, "x265:sao", "1");
}

static outcome encodeWith(
    context *context, encoder *encoder, const tern_heif_settings *settings, image *image, output *output) {
    numbers *numbers = library.newNumbers();
    options *options = library.newOptions();
    outcome outcome = {6, 0, "no memory"};
    if (numbers && options) {
        numbers->primaries = BT709;
        numbers->transfer = SRGB;
        numbers->matrix = BT601;
        numbers->isFull = 1;
        tune(encoder, settings);
        outcome = library.setNumbers(image, numbers);
        options->savesAlpha = !settings->isOpaque;
        if (options->version >= 4) {
            options->numbers = numbers;
            options->leavesNumbers = 0;
        }
        if (outcome.code == OK) outcome = library.encode(context, image, encoder, options, NULL);
        if (options->version >= 4) options->numbers = NULL;
        writer writer = {1, append};
        if (outcome.code == OK) outcome = library.write(context, &writer, output);
    }
    if (options) library.freeOptions(options);
    if (numbers) library.freeNumbers(numbers);
    return outcome;
}

uint8_t *tern_heif_encode(
    const uint8_t *pixels, size_t stride, tern_heif_settings settings, size_t *count, char *error) {
    const char *obstacle = tern_heif_writer_obstacle();
    output output = {NULL, 0};
    image *image = obstacle ? NULL : makeImage(&settings, pixels, stride);
    context *context = image ? library.newContext() : NULL;
    encoder *encoder = NULL;
    outcome outcome = {6, 0, obstacle ? obstacle : ""};
    if (context) outcome = library.find(context, HEVC, &encoder);
    if (encoder) outcome = encodeWith(context, encoder, &settings, image, &output);
    // The text is the context's.
    if (outcome.code != OK) {
        snprintf(error, 160, "%.150s", outcome.text ? outcome.text : "");
        free(output.bytes);
        output.bytes = NULL;
    }
    if (encoder) library.releaseEncoder(encoder);
    if (context) library.freeContext(context);
    if (image) library.release(image);
    *count = output.count;
    return output.bytes;
}
#endif
