#include "incremental.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>

// JPEG XL is decoded as a whole, by the decoder of whole files. A preview is decoded from all bytes so far. libjxl shows
// a picture of an eighth of the size once that has arrived, and the squares that are complete. Previews are half of the
// bytes apart, so that all of them together take at most three times the work for the file.
typedef struct {
    tern_feed feed;
    // The decoder of a preview, or of the header until the next step.
    tern_jxl *jxl;
    // The bytes when the header was last looked for, and at the last boundary.
    size_t tried, shown;
    bool isKnown, isWhole;
} jxl_feed;

static tern_jxl *openBytes(jxl_feed *jxl, tern_codec_info *info, int *result, char *error) {
    tern_feed_limits limits = jxl->feed.limits;
    limits.deep = TERN_DEEP_NONE;
    return tern_jxl_open(jxl->feed.bytes, jxl->feed.end, limits, info, result, error);
}

static void closeDecoder(jxl_feed *jxl) {
    tern_jxl_close(jxl->jxl);
    jxl->jxl = NULL;
}

static tern_codec_result readHeader(jxl_feed *jxl, char *error) {
    tern_feed *feed = &jxl->feed;
    if (!feed->hasEnded && feed->end < jxl->tried + jxl->tried / 8 + 64) return TERN_CODEC_STARVED;
    jxl->tried = feed->end;
    int result = TERN_CODEC_OK;
    jxl->jxl = openBytes(jxl, &feed->info, &result, error);
    if (!jxl->jxl) return result == TERN_CODEC_TRUNCATED ? tern_feed_starved(feed, error) : (tern_codec_result)result;
    feed->state.width = feed->info.width;
    feed->state.height = feed->info.height;
    feed->state.isAnimation = feed->info.isAnimation;
    feed->state.isGathering = feed->state.isInterlaced = true;
    jxl->isKnown = true;
    return TERN_CODEC_HEADER;
}

static tern_codec_result jxlStep(tern_feed *feed, char *error) {
    jxl_feed *jxl = (jxl_feed *)feed;
    if (!jxl->isKnown) return readHeader(jxl, error);
    closeDecoder(jxl);
    if (feed->hasEnded) return TERN_CODEC_OK;
    if (jxl->isWhole || feed->end < jxl->shown + jxl->shown / 2 + 1024) return TERN_CODEC_STARVED;
    jxl->shown = feed->end;
    return TERN_CODEC_BOUNDARY;
}

static tern_codec_result jxlRender(tern_feed *feed, tern_canvas canvas, uint32_t rows, char *error) {
    (void)rows;
    jxl_feed *jxl = (jxl_feed *)feed;
    if (!jxl->jxl) {
        tern_codec_info info;
        int result = TERN_CODEC_OK;
        if (!(jxl->jxl = openBytes(jxl, &info, &result, error))) return (tern_codec_result)result;
    }
    uint64_t microseconds = 0;
    const tern_codec_result result = tern_jxl_next(jxl->jxl, canvas, &microseconds, error);
    if (result == TERN_CODEC_MORE) return result;
    jxl->isWhole = result == TERN_CODEC_OK;
    const bool isShown = tern_jxl_is_shown(jxl->jxl);
    closeDecoder(jxl);
    return result == TERN_CODEC_TRUNCATED && isShown ? TERN_CODEC_OK : result;
}

static const uint8_t *jxlProfile(tern_feed *feed, size_t *count, int *channels) {
    const jxl_feed *jxl = (jxl_feed *)feed;
    *count = 0;
    return jxl->jxl ? tern_jxl_profile(jxl->jxl, count, channels) : NULL;
}

static void jxlClose(tern_feed *feed) { closeDecoder((jxl_feed *)feed); }

tern_feed *tern_jxl_feed(void) {
    static const tern_feed_format format = {
        .step = jxlStep, .render = jxlRender, .close = jxlClose, .profile = jxlProfile,
    };
    jxl_feed *jxl = calloc(1, sizeof *jxl);
    if (!jxl) return NULL;
    jxl->feed.format = &format;
    jxl->feed.keepsBytes = true;
    return &jxl->feed;
}
#endif
