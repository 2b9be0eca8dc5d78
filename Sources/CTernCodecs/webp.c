#include "CTernCodecs.h"
#include "memory.h"

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
};

static tern_codec_result told(VP8StatusCode status, char *error) {
    switch (status) {
    case VP8_STATUS_OK: return TERN_CODEC_OK;
    case VP8_STATUS_SUSPENDED: case VP8_STATUS_NOT_ENOUGH_DATA:
        snprintf(error, 160, "the bytes end too early");
        return TERN_CODEC_TRUNCATED;
    case VP8_STATUS_OUT_OF_MEMORY: snprintf(error, 160, "out of memory"); return TERN_CODEC_MEMORY;
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        snprintf(error, 160, "a feature that libwebp does not know");
        return TERN_CODEC_UNSUPPORTED;
    default: snprintf(error, 160, "libwebp status %d", (int)status); return TERN_CODEC_CORRUPT;
    }
}

tern_webp *tern_webp_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error) {
    tern_webp *webp = calloc(1, sizeof *webp);
    *result = TERN_CODEC_MEMORY;
    if (!webp) return NULL;
    webp->bytes = bytes;
    webp->count = count;
    if (!WebPInitDecoderConfig(&webp->config)) { *result = TERN_CODEC_UNSUPPORTED; free(webp); return NULL; }
    *result = told(WebPGetFeatures(bytes, count, &webp->config.input), error);
    if (*result != TERN_CODEC_OK) { free(webp); return NULL; }
    *info = (tern_codec_info){.width = (uint32_t)webp->config.input.width,
                              .height = (uint32_t)webp->config.input.height, .orientation = 1, .frameCount = 1,
                              .hasAlpha = webp->config.input.has_alpha != 0};
    const size_t size = tern_webp_size(bytes);
    info->memory = webp->config.input.has_animation
        ? tern_webp_frames_memory(info->width, info->height, size)
        : tern_webp_memory(info->width, info->height, webp->config.input.format != 1, info->hasAlpha, size);
    WebPData data = {bytes, count};
    WebPDemuxState state;
    WebPDemuxer *demuxer = WebPDemuxPartial(&data, &state);
    if (demuxer) {
        uint32_t flags = WebPDemuxGetI(demuxer, WEBP_FF_FORMAT_FLAGS);
        info->hasProfile = (flags & ICCP_FLAG) != 0;
        if (webp->config.input.has_animation) {
            info->frameCount = WebPDemuxGetI(demuxer, WEBP_FF_FRAME_COUNT);
            info->loopCount = WebPDemuxGetI(demuxer, WEBP_FF_LOOP_COUNT);
        }
        WebPChunkIterator chunk;
        if ((flags & EXIF_FLAG) && WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk)) {
            info->orientation = tern_exif_orientation(chunk.chunk.bytes, chunk.chunk.size);
            WebPDemuxReleaseChunkIterator(&chunk);
        }
        WebPDemuxDelete(demuxer);
    }
    return webp;
}

const uint8_t *tern_webp_profile(const tern_webp *webp, size_t *count, int *channels) {
    WebPData data = {webp->bytes, webp->count};
    WebPDemuxState state;
    WebPDemuxer *demuxer = WebPDemuxPartial(&data, &state);
    WebPChunkIterator chunk;
    const uint8_t *profile = NULL;
    *channels = TERN_CHANNELS_RGB;
    if (demuxer && WebPDemuxGetChunk(demuxer, "ICCP", 1, &chunk)) {
        // Lies within the file's bytes, not in the demuxer.
        profile = chunk.chunk.bytes;
        *count = chunk.chunk.size;
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    WebPDemuxDelete(demuxer);
    return profile;
}

tern_codec_result tern_webp_start(tern_webp *webp, tern_canvas canvas, char *error) {
    WebPDecoderConfig *config = &webp->config;
    config->output.colorspace = MODE_RGBA;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = canvas.pixels;
    config->output.u.RGBA.stride = (int)canvas.stride;
    // libwebp decodes nothing into a buffer that is too small for what it finds.
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
    // A smaller picture than the header's would leave some of the canvas as it was.
    int width = 0, height = 0;
    if (status == VP8_STATUS_OK && WebPIDecGetRGB(webp->decoder, NULL, &width, &height, NULL)
        && !tern_canvas_fits(webp->canvas, (uint32_t)width, (uint32_t)height, error))
        return TERN_CODEC_CORRUPT;
    return told(status, error);
}

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
};

tern_webp_frames *tern_webp_frames_open(const uint8_t *bytes, size_t count, int *result, char *error) {
    tern_webp_frames *frames = calloc(1, sizeof *frames);
    *result = TERN_CODEC_MEMORY;
    if (!frames) return NULL;
    WebPAnimDecoderOptions options;
    WebPData data = {bytes, count};
    if (WebPAnimDecoderOptionsInit(&options)) {
        options.color_mode = MODE_RGBA;
        options.use_threads = 0;
        frames->decoder = WebPAnimDecoderNew(&data, &options);
    }
    if (!frames->decoder || !WebPAnimDecoderGetInfo(frames->decoder, &frames->info)) {
        snprintf(error, 160, "the animation's structure is not whole");
        *result = TERN_CODEC_CORRUPT;
        tern_webp_frames_close(frames);
        return NULL;
    }
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
        snprintf(error, 160, "the frame's data is damaged");
        return TERN_CODEC_CORRUPT;
    }
    *milliseconds = end > frames->last ? (uint32_t)(end - frames->last) : 0;
    frames->last = end;
    size_t line = (size_t)canvas.width * 4;
    for (uint32_t y = 0; y < canvas.height; y++) memcpy(canvas.pixels + canvas.stride * y, frame + line * y, line);
    return TERN_CODEC_OK;
}

void tern_webp_frames_rewind(tern_webp_frames *frames) {
    WebPAnimDecoderReset(frames->decoder);
    frames->last = 0;
}

void tern_webp_frames_close(tern_webp_frames *frames) {
    if (!frames) return;
    if (frames->decoder) WebPAnimDecoderDelete(frames->decoder);
    free(frames);
}

uint8_t *tern_webp_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, float quality, bool lossless,
    size_t *count, char *error) {
    uint8_t *bytes = NULL;
    // libwebp's own buffer is freed by WebPFree, which is free() from 1.0 on.
    *count = lossless ? WebPEncodeLosslessRGBA(pixels, (int)width, (int)height, (int)stride, &bytes)
                      : WebPEncodeRGBA(pixels, (int)width, (int)height, (int)stride, quality, &bytes);
    if (*count > 0) return bytes;
    snprintf(error, 160, "libwebp could not encode %u by %u pixels", width, height);
    return NULL;
}
#endif
