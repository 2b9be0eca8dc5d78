// Encodes animated WebP with libwebp, and puts its frames together with libwebpmux, which is loaded at run time.
#include "CTernCodecs.h"

#if defined(__linux__)
#include "loaded.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <webp/encode.h>
#include <webp/mux.h>

static struct {
    int (*defaults)(WebPAnimEncoderOptions *, int);
    WebPAnimEncoder *(*open)(int, int, const WebPAnimEncoderOptions *, int);
    int (*add)(WebPAnimEncoder *, WebPPicture *, int, const WebPConfig *), (*assemble)(WebPAnimEncoder *, WebPData *);
    const char *(*text)(WebPAnimEncoder *);
    void (*close)(WebPAnimEncoder *);
    char obstacle[160];
} library;

static void loadOnce(void) {
    static const char *const names[] = {"libwebpmux.so.3"};
    const tern_symbol symbols[] = {
        {"WebPAnimEncoderOptionsInitInternal", &library.defaults}, {"WebPAnimEncoderNewInternal", &library.open},
        {"WebPAnimEncoderAdd", &library.add}, {"WebPAnimEncoderAssemble", &library.assemble},
        {"WebPAnimEncoderGetError", &library.text}, {"WebPAnimEncoderDelete", &library.close},
    };
    tern_load(
        names, 1, symbols, sizeof symbols / sizeof *symbols,
        "install libwebpmux: the Debian package libwebpmux3 (Fedora: libwebp)", library.obstacle);
}

const char *tern_webp_writer_obstacle(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, loadOnce);
    return library.obstacle[0] ? library.obstacle : NULL;
}

struct tern_webp_writer {
    WebPAnimEncoder *encoder;
    WebPConfig config;
    int width, height;
    // The time of the next frame.
    int milliseconds;
};

tern_webp_writer *tern_webp_writer_open(tern_webp_settings settings, char *error) {
    const char *obstacle = tern_webp_writer_obstacle();
    if (obstacle) { snprintf(error, 160, "%s", obstacle); return NULL; }
    if (settings.width > WEBP_MAX_DIMENSION || settings.height > WEBP_MAX_DIMENSION) {
        snprintf(error, 160, "WebP has at most %d pixels a side", WEBP_MAX_DIMENSION);
        return NULL;
    }
    WebPAnimEncoderOptions options;
    tern_webp_writer *writer = calloc(1, sizeof *writer);
    if (!writer) return NULL;
    if (!WebPConfigInit(&writer->config) || !library.defaults(&options, WEBP_MUX_ABI_VERSION)) {
        snprintf(error, 160, "libwebp and libwebpmux are of another version than their headers");
        free(writer);
        return NULL;
    }
    writer->config.quality = settings.quality;
    writer->config.lossless = settings.isLossless;
    writer->width = (int)settings.width;
    writer->height = (int)settings.height;
    options.anim_params.loop_count = settings.loops < UINT16_MAX ? (int)settings.loops : UINT16_MAX;
    writer->encoder = library.open(writer->width, writer->height, &options, WEBP_MUX_ABI_VERSION);
    if (writer->encoder) return writer;
    free(writer);
    return NULL;
}

tern_codec_result tern_webp_writer_add(
    tern_webp_writer *writer, const uint8_t *pixels, size_t stride, uint32_t milliseconds, char *error) {
    WebPPicture picture;
    if (milliseconds > (uint32_t)(INT_MAX - writer->milliseconds)) {
        snprintf(error, 160, "the animation is longer than 24 days");
        return TERN_CODEC_CORRUPT;
    }
    if (stride > INT_MAX || !WebPPictureInit(&picture)) {
        snprintf(error, 160, "libwebp is of another version than its headers");
        return TERN_CODEC_CORRUPT;
    }
    picture.width = writer->width;
    picture.height = writer->height;
    picture.use_argb = 1;
    if (!WebPPictureImportRGBA(&picture, pixels, (int)stride)) {
        WebPPictureFree(&picture);
        snprintf(error, 160, "no memory for the frame");
        return TERN_CODEC_MEMORY;
    }
    const int added = library.add(writer->encoder, &picture, writer->milliseconds, &writer->config);
    writer->milliseconds += (int)milliseconds;
    WebPPictureFree(&picture);
    if (added) return TERN_CODEC_OK;
    snprintf(error, 160, "%.150s", library.text(writer->encoder));
    return TERN_CODEC_CORRUPT;
}

uint8_t *tern_webp_writer_finish(tern_webp_writer *writer, size_t *count, char *error) {
    WebPData file;
    WebPDataInit(&file);
    // The end of the last frame.
    if (!library.add(writer->encoder, NULL, writer->milliseconds, NULL) || !library.assemble(writer->encoder, &file)) {
        snprintf(error, 160, "%.150s", library.text(writer->encoder));
        return NULL;
    }
    // libwebp's memory is freed by WebPFree, which is free() from 1.0 on.
    *count = file.size;
    return (uint8_t *)(uintptr_t)file.bytes;
}

void tern_webp_writer_close(tern_webp_writer *writer) {
    if (!writer) return;
    library.close(writer->encoder);
    free(writer);
}
#endif
