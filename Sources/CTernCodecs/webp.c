#include "memory.h"
#include "webp_chunks.h"

#if defined(__linux__)
#if !__has_include(<webp/demux.h>)
#error "TernImages needs libwebp's headers: install the Debian package libwebp-dev (Fedora: libwebp-devel)"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>

struct tern_webp {
    const uint8_t *bytes;
    size_t count, given, step;
    WebPDecoderConfig config;
    WebPIDecoder *decoder;
    tern_canvas canvas;
    bool hasLostColors;
};

tern_webp *tern_webp_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error) {
    tern_webp *webp = calloc(1, sizeof *webp);
    *result = TERN_CODEC_MEMORY;
    if (!webp) return NULL;
    webp->bytes = bytes;
    webp->count = count;
    if (!WebPInitDecoderConfig(&webp->config)) { *result = TERN_CODEC_UNSUPPORTED; free(webp); return NULL; }
    *result = tern_webp_result(WebPGetFeatures(bytes, count, &webp->config.input), error);
    if (*result != TERN_CODEC_OK) { free(webp); return NULL; }
    *info = (tern_codec_info){.width = (uint32_t)webp->config.input.width,
                              .height = (uint32_t)webp->config.input.height, .orientation = 1, .frameCount = 1,
                              .hasAlpha = webp->config.input.has_alpha != 0};
    const size_t size = tern_webp_size(bytes);
    info->memory = webp->config.input.has_animation
        ? tern_webp_frames_memory(info->width, info->height, size)
        : tern_webp_memory(info->width, info->height, webp->config.input.format != 1, info->hasAlpha, size);
    tern_webp_chunks chunks = tern_webp_walk(bytes, count);
    info->hasProfile = chunks.hasProfile;
    info->isCut = tern_webp_is_cut(&chunks);
    info->isAnimation = webp->config.input.has_animation != 0;
    if (info->isAnimation) {
        info->frameCount = chunks.frames;
        info->loopCount = chunks.loops;
    }
    if (chunks.exifCount > 0) info->orientation = tern_exif_orientation(bytes + chunks.exif, chunks.exifCount);
    return webp;
}

const uint8_t *tern_webp_profile(const tern_webp *webp, size_t *count, int *channels) {
    tern_webp_chunks chunks = tern_webp_walk(webp->bytes, webp->count);
    *channels = TERN_CHANNELS_RGB;
    *count = chunks.profileCount;
    return chunks.profileCount > 0 ? webp->bytes + chunks.profile : NULL;
}

tern_codec_result tern_webp_start(tern_webp *webp, tern_canvas canvas, char *error) {
    WebPDecoderConfig *config = &webp->config;
    config->output.colorspace = MODE_RGBA;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = canvas.pixels;
    config->output.u.RGBA.stride = (int)canvas.stride;
    // libwebp writes nothing into a buffer that is too small for the picture it finds.
    config->output.u.RGBA.size = canvas.stride * canvas.height;
    webp->canvas = canvas;
    if (canvas.width != (uint32_t)config->input.width || canvas.height != (uint32_t)config->input.height) {
        config->options.use_scaling = 1;
        config->options.scaled_width = (int)canvas.width;
        config->options.scaled_height = (int)canvas.height;
    }
    webp->decoder = WebPIDecode(NULL, 0, config);
    webp->step = webp->count / 16 + 65536;
    if (!webp->decoder) { snprintf(error, 160, "libwebp made no decoder"); return TERN_CODEC_MEMORY; }
    return TERN_CODEC_OK;
}

tern_codec_result tern_webp_step(tern_webp *webp, char *error) {
    webp->given = webp->count - webp->given < webp->step ? webp->count : webp->given + webp->step;
    VP8StatusCode status = WebPIUpdate(webp->decoder, webp->bytes, webp->given);
    if (status == VP8_STATUS_SUSPENDED && webp->given < webp->count) return TERN_CODEC_MORE;
    int last = 0;
    if (WebPIDecGetRGB(webp->decoder, &last, NULL, NULL, NULL) && last > 0 && (uint32_t)last <= webp->canvas.height)
        webp->hasLostColors = tern_webp_hide_alpha(&webp->config, 0, (uint32_t)last);
    // A picture smaller than the header states would leave a part of the canvas unchanged.
    int width = 0, height = 0;
    if (status == VP8_STATUS_OK && WebPIDecGetRGB(webp->decoder, NULL, &width, &height, NULL)
        && !tern_canvas_fits(webp->canvas, (uint32_t)width, (uint32_t)height, error))
        return TERN_CODEC_CORRUPT;
    return tern_webp_result(status, error);
}

bool tern_webp_has_lost_colors(const tern_webp *webp) { return webp->hasLostColors; }

void tern_webp_close(tern_webp *webp) {
    if (!webp) return;
    if (webp->decoder) WebPIDelete(webp->decoder);
    WebPFreeDecBuffer(&webp->config.output);
    free(webp);
}

struct tern_webp_frames {
    WebPAnimDecoder *decoder;
    WebPAnimInfo info;
    int last;
    uint32_t number;
    // A Boolean value that indicates whether every frame covers the canvas and states that it has no alpha.
    bool isOpaque;
    // For a file that is cut short: its complete frames as a separate file, because libwebp does not open an incomplete
    // file.
    uint8_t *part;
};

/// Returns the bytes up to the last complete frame, as a file whose header states that size; NULL when memory is short.
static uint8_t *wholeFrames(const uint8_t *bytes, size_t count) {
    uint8_t *part = malloc(count);
    if (!part) return NULL;
    memcpy(part, bytes, count);
    for (int i = 0; i < 4; i++) part[4 + i] = (uint8_t)((count - 8) >> 8 * i);
    return part;
}

/// Returns whether every frame covers the canvas and states that it has no alpha.
static bool isOpaque(const tern_webp_frames *frames) {
    WebPIterator each;
    bool opaque = true;
    int more = WebPDemuxGetFrame(WebPAnimDecoderGetDemuxer(frames->decoder), 1, &each);
    while (more && opaque) {
        opaque = !each.has_alpha && each.x_offset == 0 && each.y_offset == 0
            && (uint32_t)each.width == frames->info.canvas_width && (uint32_t)each.height == frames->info.canvas_height;
        more = WebPDemuxNextFrame(&each);
    }
    WebPDemuxReleaseIterator(&each);
    return opaque;
}

tern_webp_frames *tern_webp_frames_open(const uint8_t *bytes, size_t count, int *result, char *error) {
    tern_webp_frames *frames = calloc(1, sizeof *frames);
    *result = TERN_CODEC_MEMORY;
    if (!frames) return NULL;
    WebPAnimDecoderOptions options;
    WebPData data = {bytes, count};
    tern_webp_chunks chunks = tern_webp_walk(bytes, count);
    bool isCut = tern_webp_is_cut(&chunks);
    if (isCut && chunks.frames == 0) {
        snprintf(error, 160, "the bytes end before the first frame does");
        *result = TERN_CODEC_TRUNCATED;
        free(frames);
        return NULL;
    }
    if (isCut) {
        data.size = chunks.framesEnd;
        data.bytes = frames->part = wholeFrames(bytes, chunks.framesEnd);
        if (!frames->part) { free(frames); return NULL; }
    }
    if (WebPAnimDecoderOptionsInit(&options)) {
        options.color_mode = MODE_RGBA;
        options.use_threads = 0;
        frames->decoder = WebPAnimDecoderNew(&data, &options);
    }
    if (!frames->decoder || !WebPAnimDecoderGetInfo(frames->decoder, &frames->info)) {
        snprintf(error, 160, "the chunks of the animation contradict each other");
        *result = TERN_CODEC_CORRUPT;
        tern_webp_frames_close(frames);
        return NULL;
    }
    frames->isOpaque = isOpaque(frames);
    *result = TERN_CODEC_OK;
    return frames;
}

tern_codec_result tern_webp_frames_next(
    tern_webp_frames *frames, tern_canvas canvas, uint32_t *milliseconds, char *error) {
    if (!tern_canvas_fits(canvas, frames->info.canvas_width, frames->info.canvas_height, error))
        return TERN_CODEC_CORRUPT;
    uint8_t *frame = NULL;
    int end = 0;
    if (!WebPAnimDecoderGetNext(frames->decoder, &frame, &end)) {
        snprintf(error, 160, "the data of frame %u are damaged", frames->number);
        return TERN_CODEC_CORRUPT;
    }
    *milliseconds = end > frames->last ? (uint32_t)(end - frames->last) : 0;
    frames->last = end;
    frames->number++;
    size_t line = (size_t)canvas.width * 4;
    for (uint32_t y = 0; y < canvas.height; y++) memcpy(canvas.pixels + canvas.stride * y, frame + line * y, line);
    // libwebp writes the alpha that the data of a lossless frame hold, whatever its header states.
    if (frames->isOpaque) tern_make_opaque(canvas.pixels, canvas.stride, canvas.width, canvas.height);
    return TERN_CODEC_OK;
}

void tern_webp_frames_rewind(tern_webp_frames *frames) {
    WebPAnimDecoderReset(frames->decoder);
    frames->last = 0;
    frames->number = 0;
}

void tern_webp_frames_close(tern_webp_frames *frames) {
    if (!frames) return;
    if (frames->decoder) WebPAnimDecoderDelete(frames->decoder);
    free(frames->part);
    free(frames);
}

static void put24(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 3; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static uint8_t *putChunk(uint8_t *at, const char *name, const uint8_t *data, size_t count) {
    memcpy(at, name, 4);
    put24(at + 4, (uint32_t)count);
    at[7] = (uint8_t)(count >> 24);
    memcpy(at + 8, data, count);
    if (count % 2) at[8 + count] = 0;
    return at + 8 + count + count % 2;
}

/// Frees a file, and returns a copy with a profile before its picture (RFC 9649 §2.7), or NULL.
static uint8_t *addProfile(
    uint8_t *file, size_t *count, uint32_t width, uint32_t height, tern_stated_colors colors) {
    const bool isExtended = !memcmp(file + 12, "VP8X", 4);
    const size_t start = isExtended ? 30 : 12, rest = *count - start;
    uint8_t *made = malloc(12 + 18 + 9 + colors.profileCount + rest);
    if (made) {
        // The alpha of a picture without extended header is in its own header.
        const bool hasAlpha = isExtended ? file[20] & 0x10 : !memcmp(file + 12, "VP8L", 4) && (file[24] & 0x10);
        uint8_t header[10] = {(uint8_t)(0x20 | (hasAlpha ? 0x10 : 0))};
        put24(header + 4, width - 1);
        put24(header + 7, height - 1);
        memcpy(made, file, 12);
        uint8_t *at = putChunk(made + 12, "VP8X", header, sizeof header);
        at = putChunk(at, "ICCP", colors.profile, colors.profileCount);
        memcpy(at, file + start, rest);
        *count = (size_t)(at - made) + rest;
        put24(made + 4, (uint32_t)(*count - 8));
        made[7] = (uint8_t)((*count - 8) >> 24);
    }
    free(file);
    return made;
}

uint8_t *tern_webp_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, float quality, bool lossless,
    tern_stated_colors colors, size_t *count, char *error) {
    uint8_t *bytes = NULL;
    // libwebp's own buffer is freed by WebPFree, which is free() from 1.0 on.
    *count = lossless ? WebPEncodeLosslessRGBA(pixels, (int)width, (int)height, (int)stride, &bytes)
                      : WebPEncodeRGBA(pixels, (int)width, (int)height, (int)stride, quality, &bytes);
    if (*count > 30 || (*count > 0 && !colors.profile))
        return colors.profile ? addProfile(bytes, count, width, height, colors) : bytes;
    free(bytes);
    snprintf(error, 160, "libwebp could not encode %u by %u pixels", width, height);
    return NULL;
}
#endif
