// Encodes AVIF with the libavif that the decoder found, if that has an AV1 encoder.
#include "avif_layout.h"

#if defined(__linux__)
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENCODER_HEAD                                                                                                  \
    int codec, maxThreads, speed, keyframeInterval;                                                                   \
    uint64_t timescale;
typedef struct { ENCODER_HEAD int leastQuantizer, mostQuantizer, leastAlphaQuantizer, mostAlphaQuantizer; } encoder0;
typedef struct { ENCODER_HEAD int repetitions; uint32_t layers; int quality, alphaQuality; } encoder1;
typedef struct { uint8_t *data; size_t size; } bytes;

enum { CAN_ENCODE = 2, YUV444 = 1, YUV420 = 3, SINGLE = 2, FULL_RANGE = 1, ENDLESS = -1, WORST_QUANTIZER = 63 };
// The code points of sRGB, and of the matrix that its pictures usually have (ITU-T H.273).
enum { BT709 = 1, SRGB = 13, BT601 = 6 };
enum { MILLISECONDS = 1000 };

static struct {
    encoder0 *(*create)(void);
    void (*destroy)(encoder0 *);
    int (*add)(encoder0 *, const image0 *, uint64_t, uint32_t), (*finish)(encoder0 *, bytes *);
    image0 *(*createImage)(uint32_t, uint32_t, uint32_t, int);
    void (*destroyImage)(image0 *);
    void (*defaults)(rgb *, const image0 *);
    int (*convert)(image0 *, const rgb *);
    void (*freeBytes)(bytes *);
    const char *(*codecName)(int, uint32_t), *(*text)(int);
} library;
static bool isKnown;

static void loadOnce(void) {
    const struct { const char *name; void *place; } symbols[] = {
        {"avifEncoderCreate", &library.create}, {"avifEncoderDestroy", &library.destroy},
        {"avifEncoderAddImage", &library.add}, {"avifEncoderFinish", &library.finish},
        {"avifImageCreate", &library.createImage}, {"avifImageDestroy", &library.destroyImage},
        {"avifRGBImageSetDefaults", &library.defaults}, {"avifImageRGBToYUV", &library.convert},
        {"avifRWDataFree", &library.freeBytes}, {"avifCodecName", &library.codecName},
        {"avifResultToString", &library.text},
    };
    isKnown = true;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = tern_avif_symbol(symbols[i].name);
        memcpy(symbols[i].place, &symbol, sizeof symbol);
        isKnown &= symbol != NULL;
    }
}

const char *tern_avif_writer_obstacle(void) {
    const char *obstacle = tern_avif_obstacle();
    if (obstacle) return obstacle;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return isKnown && library.codecName(0, CAN_ENCODE) ? NULL : "this libavif has no encoder of AV1";
}

struct tern_avif_writer {
    encoder0 *encoder;
    uint32_t width, height;
    bool isOpaque, isStill;
    int quality;
};

static tern_codec_result translate(int result, char *error) {
    if (result == OK) return TERN_CODEC_OK;
    snprintf(error, 160, "%.150s", library.text(result));
    if (result == NO_CODEC) return TERN_CODEC_UNSUPPORTED;
    return result == OUT_OF_MEMORY ? TERN_CODEC_MEMORY : TERN_CODEC_CORRUPT;
}

tern_avif_writer *tern_avif_writer_open(tern_avif_writer_settings settings, char *error) {
    const char *obstacle = tern_avif_writer_obstacle();
    if (obstacle) { snprintf(error, 160, "%s", obstacle); return NULL; }
    // The limit of libavif's decoder.
    if (settings.width > 32768 || settings.height > 32768) {
        snprintf(error, 160, "AVIF is decoded up to 32768 pixels a side");
        return NULL;
    }
    tern_avif_writer *writer = calloc(1, sizeof *writer);
    if (!writer) return NULL;
    *writer = (tern_avif_writer){
        .encoder = library.create(), .width = settings.width, .height = settings.height,
        .isOpaque = settings.isOpaque, .isStill = settings.isStill, .quality = settings.quality};
    if (!writer->encoder) { free(writer); return NULL; }
    encoder0 *encoder = writer->encoder;
    encoder->maxThreads = 1;
    encoder->speed = settings.speed;
    encoder->timescale = MILLISECONDS;
    if (tern_avif_is_modern()) {
        encoder1 *modern = (encoder1 *)encoder;
        modern->quality = settings.quality;
        modern->alphaQuality = settings.quality;
        modern->repetitions = settings.loops == 0 || settings.loops > INT32_MAX ? ENDLESS : (int)settings.loops - 1;
    } else {
        // The same scale as that of 1.0. Its files do not state how often they play.
        int quantizer = ((100 - settings.quality) * WORST_QUANTIZER + 50) / 100;
        encoder->leastQuantizer = encoder->mostQuantizer = quantizer;
        encoder->leastAlphaQuantizer = encoder->mostAlphaQuantizer = quantizer;
    }
    return writer;
}

tern_codec_result tern_avif_writer_add(
    tern_avif_writer *writer, const uint8_t *pixels, size_t stride, uint32_t milliseconds, char *error) {
    // Colours at half the size are not seen, except at a high quality.
    image0 *image = library.createImage(writer->width, writer->height, 8, writer->quality >= 90 ? YUV444 : YUV420);
    if (!image) { snprintf(error, 160, "no memory for the frame"); return TERN_CODEC_MEMORY; }
    image->range = FULL_RANGE;
    image->primaries = BT709;
    image->transfer = SRGB;
    image->matrix = BT601;
    rgb source;
    memset(&source, 0, sizeof source);
    library.defaults(&source, image);
    source.zero.depth = 8;
    source.zero.format = RGBA;
    source.zero.ignoreAlpha = writer->isOpaque;
    source.zero.premultiplied = 0;
    // libavif only reads them.
    if (tern_avif_is_modern()) {
        source.one.pixels = (uint8_t *)pixels;
        source.one.rowBytes = (uint32_t)stride;
    } else {
        source.zero.pixels = (uint8_t *)pixels;
        source.zero.rowBytes = (uint32_t)stride;
    }
    int result = library.convert(image, &source);
    if (result == OK) result = library.add(writer->encoder, image, milliseconds, writer->isStill ? SINGLE : 0);
    library.destroyImage(image);
    return translate(result, error);
}

uint8_t *tern_avif_writer_finish(tern_avif_writer *writer, size_t *count, char *error) {
    bytes output = {NULL, 0};
    tern_codec_result result = translate(library.finish(writer->encoder, &output), error);
    // libavif's own memory is freed by its own function.
    uint8_t *copy = result == TERN_CODEC_OK && output.size > 0 ? malloc(output.size) : NULL;
    if (copy) memcpy(copy, output.data, output.size);
    *count = output.size;
    library.freeBytes(&output);
    return copy;
}

void tern_avif_writer_close(tern_avif_writer *writer) {
    if (!writer) return;
    library.destroy(writer->encoder);
    free(writer);
}
#endif
