// Encodes JPEG XL with libjxl, on the calling thread.
#include "CTernCodecs.h"

#if defined(__linux__)
#include "jxl_layout.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct encoder encoder;
typedef struct settings settings;

enum { NEEDS_OUTPUT = 2, EFFORT = 0, MILLISECONDS = 1000 };

static struct {
    uint32_t (*version)(void);
    encoder *(*create)(const void *);
    void (*destroy)(encoder *);
    settings *(*newSettings)(encoder *, const settings *);
    int (*setOption)(settings *, int, int64_t), (*setLossless)(settings *, int), (*setDistance)(settings *, float);
    void (*startImage)(imageInfo *), (*startFrame)(frameInfo *), (*makeSRGB)(colorEncoding *, int);
    int (*setImage)(encoder *, const imageInfo *), (*setFrame)(settings *, const frameInfo *);
    int (*setColor)(encoder *, const colorEncoding *);
    int (*add)(const settings *, const pixelFormat *, const void *, size_t);
    void (*end)(encoder *);
    int (*process)(encoder *, uint8_t **, size_t *), (*error)(encoder *);
    char obstacle[160];
} library;

static void loadOnce(void) {
    const tern_symbol symbols[] = {
        {"JxlEncoderVersion", &library.version}, {"JxlEncoderCreate", &library.create},
        {"JxlEncoderDestroy", &library.destroy}, {"JxlEncoderFrameSettingsCreate", &library.newSettings},
        {"JxlEncoderFrameSettingsSetOption", &library.setOption},
        {"JxlEncoderSetFrameLossless", &library.setLossless}, {"JxlEncoderSetFrameDistance", &library.setDistance},
        {"JxlEncoderInitBasicInfo", &library.startImage}, {"JxlEncoderInitFrameHeader", &library.startFrame},
        {"JxlColorEncodingSetToSRGB", &library.makeSRGB}, {"JxlEncoderSetBasicInfo", &library.setImage},
        {"JxlEncoderSetFrameHeader", &library.setFrame}, {"JxlEncoderSetColorEncoding", &library.setColor},
        {"JxlEncoderAddImageFrame", &library.add}, {"JxlEncoderCloseInput", &library.end},
        {"JxlEncoderProcessOutput", &library.process}, {"JxlEncoderGetError", &library.error},
    };
    tern_jxl_load(symbols, sizeof symbols / sizeof *symbols, &library.version, library.obstacle);
}

const char *tern_jxl_writer_obstacle(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return library.obstacle[0] ? library.obstacle : NULL;
}

struct tern_jxl_writer {
    encoder *encoder;
    tern_jxl_settings settings;
    uint8_t *bytes;
    size_t count, capacity;
};

/// Returns the distance that libjxl's own programs use for a quality: 1 for 90, which is hardly seen.
static float distance(float quality) {
    if (quality >= 100) return 0.05f;
    if (quality >= 30) return 0.1f + (100 - quality) * 0.09f;
    return 53.0f / 3000 * quality * quality - 23.0f / 20 * quality + 25;
}

static tern_codec_result fail(const tern_jxl_writer *writer, char *error) {
    enum { OUT_OF_MEMORY = 2 };
    const int code = library.error(writer->encoder);
    if (code == OUT_OF_MEMORY) return TERN_CODEC_MEMORY;
    snprintf(error, 160, "libjxl stopped with the error %d", code);
    return TERN_CODEC_CORRUPT;
}

tern_jxl_writer *tern_jxl_writer_open(tern_jxl_settings settings, char *error) {
    const char *obstacle = tern_jxl_writer_obstacle();
    if (obstacle) {
        snprintf(error, 160, "%s", obstacle);
        return NULL;
    }
    tern_jxl_writer *writer = calloc(1, sizeof *writer);
    if (!writer) return NULL;
    writer->settings = settings;
    writer->encoder = library.create(NULL);
    if (!writer->encoder) {
        free(writer);
        return NULL;
    }
    imageInfo info;
    memset(&info, 0, sizeof info);
    library.startImage(&info);
    info.width = settings.width;
    info.height = settings.height;
    info.bits = 8;
    info.colorChannels = 3;
    info.extraChannels = settings.isOpaque ? 0 : 1;
    info.alphaBits = settings.isOpaque ? 0 : 8;
    info.usesOriginalProfile = settings.isLossless;
    info.hasAnimation = !settings.isStill;
    if (!settings.isStill) {
        info.ticks = MILLISECONDS;
        info.perSeconds = 1;
        info.loops = settings.loops;
    }
    colorEncoding color;
    memset(&color, 0, sizeof color);
    library.makeSRGB(&color, 0);
    if (library.setImage(writer->encoder, &info) == DONE && library.setColor(writer->encoder, &color) == DONE)
        return writer;
    fail(writer, error);
    tern_jxl_writer_close(writer);
    return NULL;
}

/// Writes what the encoder has so far.
static tern_codec_result drain(tern_jxl_writer *writer, char *error) {
    for (;;) {
        if (writer->capacity - writer->count < 4096) {
            const size_t capacity = writer->capacity * 2 + 65536;
            uint8_t *grown = realloc(writer->bytes, capacity);
            if (!grown) return TERN_CODEC_MEMORY;
            writer->bytes = grown;
            writer->capacity = capacity;
        }
        uint8_t *next = writer->bytes + writer->count;
        size_t room = writer->capacity - writer->count;
        const int result = library.process(writer->encoder, &next, &room);
        writer->count = (size_t)(next - writer->bytes);
        if (result == DONE) return TERN_CODEC_OK;
        if (result != NEEDS_OUTPUT) return fail(writer, error);
    }
}

tern_codec_result tern_jxl_writer_add(
    tern_jxl_writer *writer, const uint8_t *pixels, size_t stride, uint32_t milliseconds, char *error) {
    // The frame before is not the last one. It is encoded only now.
    if (writer->count > 0 || writer->capacity > 0) {
        const tern_codec_result result = drain(writer, error);
        if (result != TERN_CODEC_OK) return result;
    }
    writer->capacity = writer->capacity > 0 ? writer->capacity : 65536;
    if (!writer->bytes && !(writer->bytes = malloc(writer->capacity))) return TERN_CODEC_MEMORY;
    const tern_jxl_settings *wanted = &writer->settings;
    settings *settings = library.newSettings(writer->encoder, NULL);
    if (!settings) return TERN_CODEC_MEMORY;
    // The effort of libjxl is 1 for the least time and 9 for the smallest file.
    const int speed = wanted->speed < 0 ? 0 : wanted->speed > 10 ? 10 : wanted->speed;
    bool isFine = library.setOption(settings, EFFORT, 9 - (speed * 8 + 5) / 10) == DONE;
    if (wanted->isLossless) isFine = isFine && library.setLossless(settings, 1) == DONE;
    else isFine = isFine && library.setDistance(settings, distance(wanted->quality)) == DONE;
    if (!wanted->isStill) {
        frameInfo frame;
        memset(&frame, 0, sizeof frame);
        library.startFrame(&frame);
        frame.duration = milliseconds;
        isFine = isFine && library.setFrame(settings, &frame) == DONE;
    }
    if (!isFine) return fail(writer, error);
    const size_t channels = wanted->isOpaque ? 3 : 4, row = wanted->width * channels, count = row * wanted->height;
    uint8_t *packed = malloc(count);
    if (!packed) return TERN_CODEC_MEMORY;
    for (size_t y = 0; y < wanted->height; y++) {
        const uint8_t *source = pixels + y * stride;
        uint8_t *target = packed + y * row;
        if (wanted->isOpaque) for (size_t x = 0; x < wanted->width; x++) memcpy(target + x * 3, source + x * 4, 3);
        else memcpy(target, source, row);
    }
    const pixelFormat format = {(uint32_t)channels, BYTES, 0, 0};
    isFine = library.add(settings, &format, packed, count) == DONE;
    free(packed);
    return isFine ? TERN_CODEC_OK : fail(writer, error);
}

uint8_t *tern_jxl_writer_finish(tern_jxl_writer *writer, size_t *count, char *error) {
    library.end(writer->encoder);
    if (drain(writer, error) != TERN_CODEC_OK) return NULL;
    uint8_t *bytes = writer->bytes;
    *count = writer->count;
    writer->bytes = NULL;
    return bytes;
}

void tern_jxl_writer_close(tern_jxl_writer *writer) {
    if (!writer) return;
    library.destroy(writer->encoder);
    free(writer->bytes);
    free(writer);
}
#endif
