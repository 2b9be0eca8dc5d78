#include "incremental.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tern_feed *tern_feed_open(tern_feed_kind kind, tern_feed_limits limits) {
    tern_feed *feed = NULL;
    switch (kind) {
    case TERN_FEED_JPEG: feed = tern_jpeg_feed(); break;
    case TERN_FEED_PNG: feed = tern_png_feed(); break;
    case TERN_FEED_WEBP: feed = tern_webp_feed(); break;
    case TERN_FEED_GIF: feed = tern_gif_feed(); break;
    case TERN_FEED_JXL: feed = tern_jxl_feed(); break;
    }
    if (feed) feed->limits = limits;
    return feed;
}

// Copies every byte in once. The remaining bytes move to the front only when at least as many bytes were consumed, and
// the room is doubled when it is full. All copies together stay below four times the file.
tern_codec_result tern_feed_append(tern_feed *feed, const uint8_t *bytes, size_t count, char *error) {
    if (count == 0) return TERN_CODEC_OK;
    if (feed->format->watch) feed->format->watch(feed, bytes, count);
    if (feed->isDone && feed->format->isDoneOnce) return TERN_CODEC_OK;
    size_t left = tern_feed_left(feed);
    if (!feed->keepsBytes && feed->start > 0 && left <= feed->start) {
        memmove(feed->bytes, feed->bytes + feed->start, left);
        feed->state.copied += left;
        feed->start = 0;
        feed->end = left;
    }
    if (count > feed->capacity - feed->end) {
        size_t capacity = (feed->end + count) * 2;
        uint8_t *grown = capacity > count ? realloc(feed->bytes, capacity) : NULL;
        if (!grown) {
            snprintf(error, 160, "no memory for %zu bytes", count);
            return TERN_CODEC_MEMORY;
        }
        feed->state.copied += feed->end;
        feed->bytes = grown;
        feed->capacity = capacity;
    }
    memcpy(feed->bytes + feed->end, bytes, count);
    feed->state.copied += count;
    feed->end += count;
    return TERN_CODEC_OK;
}

void tern_feed_end(tern_feed *feed) { feed->hasEnded = true; }

tern_codec_result tern_feed_step(tern_feed *feed, char *error) {
    if (feed->isPassed) return feed->hasEnded ? TERN_CODEC_OK : TERN_CODEC_STARVED;
    tern_codec_result result = feed->format->step(feed, error);
    if (result < 0) feed->hasFailed = true;
    if (result == TERN_CODEC_OK) feed->isDone = true;
    return result;
}

const tern_codec_info *tern_feed_info(const tern_feed *feed) { return &feed->info; }

const uint8_t *tern_feed_profile(tern_feed *feed, size_t *count, int *channels) {
    return feed->format->profile ? feed->format->profile(feed, count, channels) : NULL;
}

void tern_feed_ink(tern_feed *feed, const tern_icc *color) { feed->ink = color; }

tern_codec_result tern_feed_start(tern_feed *feed, uint32_t leastWidth, uint32_t leastHeight, char *error) {
    return feed->format->start(feed, leastWidth, leastHeight, error);
}

void tern_feed_gather(tern_feed *feed) {
    feed->isPassed = feed->keepsBytes = feed->state.isGathering = true;
}

void tern_feed_await(tern_feed *feed) {
    feed->isAwaited = feed->keepsBytes = feed->state.isGathering = true;
}

tern_feed_state tern_feed_progress(const tern_feed *feed) { return feed->state; }

tern_codec_result tern_feed_render(tern_feed *feed, tern_canvas canvas, uint32_t rows, char *error) {
    if (!tern_canvas_fits(canvas, feed->state.width, feed->state.height, error)) return TERN_CODEC_CORRUPT;
    if (!feed->canvas) {
        if (feed->format->render && !feed->hasFailed) return feed->format->render(feed, canvas, rows, error);
        snprintf(error, 160, "nothing is decoded yet");
        return TERN_CODEC_CORRUPT;
    }
    size_t line = (size_t)feed->state.width * 4;
    for (uint32_t done = 0; done < rows && feed->rendered < feed->state.height; done++, feed->rendered++)
        memcpy(canvas.pixels + canvas.stride * feed->rendered, feed->canvas + line * feed->rendered, line);
    if (feed->rendered < feed->state.height) return TERN_CODEC_MORE;
    feed->rendered = 0;
    return TERN_CODEC_OK;
}

tern_codec_result tern_feed_verdict(const tern_feed *feed, char *error) {
    return feed->format->verdict ? feed->format->verdict(feed, error) : TERN_CODEC_OK;
}

const uint8_t *tern_feed_bytes(const tern_feed *feed, size_t *count) {
    *count = feed->end;
    return feed->bytes;
}

void tern_feed_close(tern_feed *feed) {
    if (!feed) return;
    if (feed->format->close) feed->format->close(feed);
    free(feed->canvas);
    free(feed->bytes);
    free(feed);
}

tern_codec_result tern_feed_starved(const tern_feed *feed, char *error) {
    if (!feed->hasEnded) return TERN_CODEC_STARVED;
    snprintf(error, 160, "the bytes end too early");
    return TERN_CODEC_TRUNCATED;
}

tern_codec_result tern_feed_canvas(tern_feed *feed, char *error) {
    const size_t pixels = (size_t)feed->state.width * feed->state.height;
    feed->canvas = calloc(pixels, 4);
    if (feed->canvas) tern_prefer_large_pages(feed->canvas, pixels * 4);
    if (feed->canvas) return TERN_CODEC_OK;
    snprintf(error, 160, "no memory for %u by %u pixels", feed->state.width, feed->state.height);
    return TERN_CODEC_MEMORY;
}
#endif
