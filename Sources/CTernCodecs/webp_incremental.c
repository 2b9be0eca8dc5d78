#include "incremental.h"
#include "memory.h"
#include "webp_chunks.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>

// libwebp's own appending copies all bytes again with each chunk of a lossless file. This decoder keeps the bytes in
// one growing buffer and shows libwebp more of them each time.
typedef struct {
    tern_feed feed;
    WebPDecoderConfig config;
    WebPIDecoder *decoder;
    size_t fileSize, shown, tried, arrived;
    bool isKnown, isDone, hasLostColors;
} webp_feed;

static tern_codec_result readHeader(webp_feed *webp, char *error) {
    tern_feed *feed = &webp->feed;
    if (feed->end < 25 || (feed->end < 30 && !feed->hasEnded)) return tern_feed_starved(feed, error);
    // libwebp walks all chunks from the first one each time.
    if (!feed->hasEnded && feed->end < webp->tried + webp->tried / 16) return tern_feed_starved(feed, error);
    webp->tried = feed->end;
    VP8StatusCode status = WebPGetFeatures(feed->bytes, feed->end, &webp->config.input);
    if (status == VP8_STATUS_NOT_ENOUGH_DATA) return tern_feed_starved(feed, error);
    if (status != VP8_STATUS_OK) return tern_webp_result(status, error);
    // An extended header states the size but not the kind of the picture, which determines its memory.
    if (webp->config.input.format == 0 && !webp->config.input.has_animation && !feed->hasEnded)
        return tern_feed_starved(feed, error);
    tern_webp_chunks chunks = tern_webp_walk(feed->bytes, feed->end);
    // The profile determines the colours of the picture, regardless of where the first bytes end.
    if (chunks.hasProfile && !chunks.reachesPicture && !feed->hasEnded) return TERN_CODEC_STARVED;
    webp->fileSize = (size_t)chunks.stated;
    feed->info = (tern_codec_info){.width = (uint32_t)webp->config.input.width,
                                   .height = (uint32_t)webp->config.input.height, .orientation = 1, .frameCount = 1,
                                   .hasAlpha = webp->config.input.has_alpha != 0, .hasProfile = chunks.hasProfile};
    feed->info.memory = tern_webp_memory(
        feed->info.width, feed->info.height, webp->config.input.format != 1, feed->info.hasAlpha,
        tern_webp_size(feed->bytes));
    // The orientation follows the picture, and another decoder composes an animation's frames. Both need all bytes.
    feed->state.isAnimation = webp->config.input.has_animation != 0;
    feed->state.isGathering = chunks.hasExif || feed->state.isAnimation;
    webp->isKnown = true;
    feed->state.hasEnd = webp->arrived >= webp->fileSize;
    return TERN_CODEC_HEADER;
}

static tern_codec_result webpStep(tern_feed *feed, char *error) {
    webp_feed *webp = (webp_feed *)feed;
    if (!webp->isKnown) return readHeader(webp, error);
    if (webp->isDone || (feed->state.isGathering && feed->hasEnded)) return TERN_CODEC_OK;
    if (feed->state.isGathering) return TERN_CODEC_STARVED;
    // Each time, libwebp decodes a lossless picture again from some rows back. The step therefore waits for more than a
    // few bytes.
    size_t more = webp->fileSize / 64 < 16384 ? webp->fileSize / 64 : 16384;
    bool isEnough = feed->hasEnded || feed->end >= webp->fileSize || feed->end >= webp->shown + more;
    if (!isEnough || (feed->end == webp->shown && !feed->hasEnded)) return TERN_CODEC_STARVED;
    // Decodes in parts, so that a cancellation takes effect in between.
    size_t stretch = 65536 + feed->end / 16;
    webp->shown = feed->end - webp->shown > stretch ? webp->shown + stretch : feed->end;
    VP8StatusCode status = WebPIUpdate(webp->decoder, feed->bytes, webp->shown);
    const uint32_t known = feed->state.rows;
    int last = 0;
    if (WebPIDecGetRGB(webp->decoder, &last, NULL, NULL, NULL) && last > 0 && (uint32_t)last <= feed->state.height)
        feed->state.rows = (uint32_t)last;
    webp->isDone = status == VP8_STATUS_OK;
    if (tern_webp_hide_alpha(&webp->config, webp->isDone ? 0 : known, feed->state.rows)) webp->hasLostColors = true;
    // A damaged header can deny the alpha that follows.
    if (webp->isDone && WebPGetFeatures(feed->bytes, feed->end, &webp->config.input) == VP8_STATUS_OK)
        feed->info.hasAlpha = webp->config.input.has_alpha != 0;
    if (webp->isDone && webp->config.input.format != 2)
        feed->state.isDoubtful = tern_webp_depends_on_pieces(feed->bytes, feed->end);
    if (webp->hasLostColors) feed->state.isDoubtful = true;
    if (status != VP8_STATUS_SUSPENDED) return tern_webp_result(status, error);
    return webp->shown < feed->end ? TERN_CODEC_MORE : tern_feed_starved(feed, error);
}

static tern_codec_result webpStart(tern_feed *feed, uint32_t width, uint32_t height, char *error) {
    webp_feed *webp = (webp_feed *)feed;
    feed->state.width = width;
    feed->state.height = height;
    if (feed->state.isGathering) return TERN_CODEC_OK;
    tern_codec_result made = tern_feed_canvas(feed, error);
    if (made != TERN_CODEC_OK) return made;
    WebPDecoderConfig *config = &webp->config;
    config->output.colorspace = MODE_RGBA;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = feed->canvas;
    config->output.u.RGBA.stride = (int)width * 4;
    config->output.u.RGBA.size = (size_t)width * height * 4;
    if (width != (uint32_t)config->input.width || height != (uint32_t)config->input.height) {
        config->options.use_scaling = 1;
        config->options.scaled_width = (int)width;
        config->options.scaled_height = (int)height;
    }
    webp->decoder = WebPIDecode(NULL, 0, config);
    if (webp->decoder) return TERN_CODEC_OK;
    snprintf(error, 160, "libwebp made no decoder");
    return TERN_CODEC_MEMORY;
}

static void webpWatch(tern_feed *feed, const uint8_t *bytes, size_t count) {
    (void)bytes;
    webp_feed *webp = (webp_feed *)feed;
    webp->arrived += count;
    feed->state.hasEnd = webp->isKnown && webp->arrived >= webp->fileSize;
}

static const uint8_t *webpProfile(tern_feed *feed, size_t *count, int *channels) {
    tern_webp_chunks chunks = tern_webp_walk(feed->bytes, feed->end);
    *channels = TERN_CHANNELS_RGB;
    *count = chunks.profileCount;
    return chunks.profileCount > 0 ? feed->bytes + chunks.profile : NULL;
}

static void webpClose(tern_feed *feed) {
    webp_feed *webp = (webp_feed *)feed;
    if (webp->decoder) WebPIDelete(webp->decoder);
    WebPFreeDecBuffer(&webp->config.output);
}

tern_feed *tern_webp_feed(void) {
    static const tern_feed_format format = {
        .step = webpStep, .start = webpStart, .close = webpClose, .profile = webpProfile, .watch = webpWatch,
        .isDoneOnce = true,
    };
    webp_feed *webp = calloc(1, sizeof *webp);
    if (!webp || !WebPInitDecoderConfig(&webp->config)) {
        free(webp);
        return NULL;
    }
    webp->feed.format = &format;
    webp->feed.keepsBytes = true;
    return &webp->feed;
}
#endif
