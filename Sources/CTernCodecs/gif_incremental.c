#include "incremental.h"
#include "lzw.h"
#include "memory.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Decodes the first frame of a GIF as its bytes arrive.
typedef enum { header, colors, block, control, comment, frame, frameColors, codeSize, data, rest } gif_place;

typedef struct {
    tern_feed feed;
    gif_place place;
    uint32_t left, top, width, height;
    uint32_t colorCount, frameCount;
    uint8_t global[768], local[768];
    const uint8_t *map;
    int transparent;
    bool interlaced, hasGlobal;
    // The number of the current row in the order of the file, its pass, and its position in the frame.
    uint32_t row, pass, y;
    tern_lzw lzw;
} gif_feed;

static uint32_t pair(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }

static const uint32_t offsets[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2}, reach[] = {8, 4, 2, 1};

/// Draws the next line. A row of an early pass also fills the rows below it that later passes draw.
static void draw(gif_feed *gif, const uint8_t *line) {
    tern_feed *feed = &gif->feed;
    uint32_t lines = gif->interlaced ? reach[gif->pass] : 1;
    for (uint32_t y = gif->y; y < gif->y + lines && y < gif->height && gif->top + y < feed->state.height; y++) {
        uint8_t *pixel = feed->canvas + ((size_t)(gif->top + y) * feed->state.width + gif->left) * 4;
        for (uint32_t x = 0; x < gif->width && gif->left + x < feed->state.width; x++, pixel += 4) {
            unsigned index = line[x];
            bool shows = (int)index != gif->transparent && index < gif->colorCount;
            if (shows) memcpy(pixel, gif->map + index * 3, 3);
            else memset(pixel, 0, 3);
            pixel[3] = shows ? 255 : 0;
        }
    }
    gif->row++;
    gif->y += gif->interlaced ? steps[gif->pass] : 1;
    while (gif->interlaced && gif->y >= gif->height && gif->pass < 3) gif->y = offsets[++gif->pass];
    if (!gif->interlaced) feed->state.rows = gif->top + gif->row < feed->state.height ? gif->top + gif->row
                                                                                     : feed->state.height;
}

static tern_codec_result corrupt(char *error, const char *text) {
    snprintf(error, 160, "%s", text);
    return TERN_CODEC_CORRUPT;
}

/// Decodes a sub-block. Returns OK when the frame is full.
static tern_codec_result decode(gif_feed *gif, const uint8_t *block, char *error) {
    tern_lzw_block(&gif->lzw, block);
    const uint8_t *line;
    while ((line = tern_lzw_row(&gif->lzw))) draw(gif, line);
    if (gif->row == gif->height) return TERN_CODEC_OK;
    return gif->lzw.damage ? corrupt(error, gif->lzw.damage) : TERN_CODEC_MORE;
}

static tern_codec_result startFrame(gif_feed *gif, unsigned codeSize, char *error) {
    tern_feed *feed = &gif->feed;
    if (gif->width == 0 || gif->height == 0
        || (uint64_t)gif->width * gif->height > 4 * (uint64_t)feed->info.width * feed->info.height + 65536) {
        snprintf(error, 160, "a frame of %u by %u pixels", gif->width, gif->height);
        return TERN_CODEC_CORRUPT;
    }
    tern_lzw_start(&gif->lzw, codeSize, gif->width, gif->height);
    if (gif->lzw.damage) return corrupt(error, gif->lzw.damage);
    if (gif->map) return TERN_CODEC_MORE;
    // Without colours the frame shows nothing, whatever its codes are.
    gif->row = gif->height;
    gif->place = comment;
    feed->state.passes = 4;
    feed->state.rows = feed->state.height;
    return TERN_CODEC_OK;
}

/// Reads the available bytes up to the next element of the format. STARVED leaves the state unchanged.
static tern_codec_result advance(gif_feed *gif, char *error) {
    tern_feed *feed = &gif->feed;
    const uint8_t *at = feed->bytes + feed->start;
    size_t left = tern_feed_left(feed);
    switch (gif->place) {
    case header:
        if (left < 13) return TERN_CODEC_STARVED;
        if (memcmp(at, "GIF8", 4) || at[5] != 'a') return corrupt(error, "no GIF");
        feed->info = (tern_codec_info){.width = pair(at + 6), .height = pair(at + 8), .orientation = 1,
                                       .hasAlpha = true, .frameCount = 1, .loopCount = 1};
        gif->hasGlobal = at[10] & 0x80;
        gif->colorCount = 2u << (at[10] & 7);
        feed->start += 13;
        gif->place = gif->hasGlobal ? colors : block;
        return TERN_CODEC_MORE;
    case colors:
        if (left < gif->colorCount * 3) return TERN_CODEC_STARVED;
        memcpy(gif->global, at, gif->colorCount * 3);
        gif->map = gif->global;
        feed->start += gif->colorCount * 3;
        gif->place = block;
        return TERN_CODEC_MORE;
    case block:
        if (left < 1) return TERN_CODEC_STARVED;
        if (*at == 0x2C) gif->place = frame;
        else if (*at == 0x21 && left < 2) return TERN_CODEC_STARVED;
        else if (*at == 0x21) gif->place = at[1] == 0xF9 ? control : comment;
        // Blocks after the first frame are not needed, even if they are damaged.
        else if (gif->frameCount > 0) gif->place = rest;
        else return corrupt(error, *at == 0x3B ? "no frame" : "an unknown block");
        feed->start += *at == 0x21 ? 2 : 1;
        return TERN_CODEC_MORE;
    case control:
        if (left < 1 || left < 1 + (size_t)*at) return TERN_CODEC_STARVED;
        if (gif->frameCount == 0 && *at == 4) gif->transparent = at[1] & 1 ? at[4] : -1;
        gif->place = comment;
        return TERN_CODEC_MORE;
    case comment:
        if (left < 1 || left < 1 + (size_t)*at) return TERN_CODEC_STARVED;
        if (*at == 0) gif->place = block;
        feed->start += 1 + (size_t)*at;
        return TERN_CODEC_MORE;
    case frame: {
        if (left < 9) return TERN_CODEC_STARVED;
        bool hasLocal = at[8] & 0x80;
        if (gif->frameCount == 0) {
            gif->left = pair(at);
            gif->top = pair(at + 2);
            gif->width = pair(at + 4);
            gif->height = pair(at + 6);
            gif->interlaced = at[8] & 0x40;
            feed->state.isInterlaced = gif->interlaced;
            // A frame without a size has that of the screen, as in browsers.
            if (gif->width == 0 || gif->height == 0) {
                gif->width = feed->info.width;
                gif->height = feed->info.height;
            }
            tern_gif_grow(&feed->info.width, &feed->info.height, at);
            feed->info.memory = tern_gif_memory(feed->info.width, feed->info.height);
        }
        if (hasLocal) gif->colorCount = 2u << (at[8] & 7);
        feed->start += 9;
        gif->place = hasLocal ? frameColors : codeSize;
        // The size of the picture is known with the first frame, which can enlarge it.
        return gif->frameCount == 0 ? TERN_CODEC_HEADER : TERN_CODEC_MORE;
    }
    case frameColors:
        if (left < gif->colorCount * 3) return TERN_CODEC_STARVED;
        memcpy(gif->local, at, gif->colorCount * 3);
        gif->map = gif->local;
        feed->start += gif->colorCount * 3;
        gif->place = codeSize;
        return TERN_CODEC_MORE;
    case codeSize:
        if (left < 1) return TERN_CODEC_STARVED;
        feed->start++;
        if (++gif->frameCount > feed->limits.frames) {
            snprintf(error, 160, "more than %u frames", feed->limits.frames);
            return TERN_CODEC_LIMIT;
        }
        feed->state.isAnimation = gif->frameCount > 1;
        gif->place = feed->state.isAnimation ? comment : data;
        if (gif->frameCount > 1) return TERN_CODEC_MORE;
        return startFrame(gif, *at, error);
    case data: {
        if (left < 1 || left < 1 + (size_t)*at) return TERN_CODEC_STARVED;
        uint32_t pass = gif->pass;
        feed->start += 1 + (size_t)*at;
        tern_codec_result result = decode(gif, at, error);
        if (result == TERN_CODEC_OK) gif->place = comment;
        feed->state.passes = result == TERN_CODEC_OK ? 4 : (int)gif->pass;
        return result == TERN_CODEC_MORE && gif->pass > pass ? TERN_CODEC_BOUNDARY : result;
    }
    case rest:
        feed->state.hasEnd = true;
        feed->start = feed->end;
        return TERN_CODEC_STARVED;
    }
    return TERN_CODEC_STARVED;
}

static tern_codec_result gifStep(tern_feed *feed, char *error) {
    gif_feed *gif = (gif_feed *)feed;
    for (int turn = 0; turn < 16; turn++) {
        tern_codec_result result = advance(gif, error);
        // The frames after the first are only counted.
        bool isWhole = gif->row > 0 && gif->row == gif->height;
        if (result == TERN_CODEC_STARVED) {
            // A complete first frame can be shown; at the end of the bytes the file must be complete, too.
            bool isEnough = isWhole && (!feed->hasEnded || gif->place == rest);
            return isEnough ? TERN_CODEC_OK : tern_feed_starved(feed, error);
        }
        if (isWhole && result == TERN_CODEC_OK) continue;
        if (result != TERN_CODEC_MORE) return result;
    }
    return TERN_CODEC_MORE;
}

static tern_codec_result gifStart(tern_feed *feed, uint32_t leastWidth, uint32_t leastHeight, char *error) {
    (void)leastWidth;
    (void)leastHeight;
    feed->state.width = feed->info.width;
    feed->state.height = feed->info.height;
    return tern_feed_canvas(feed, error);
}

tern_feed *tern_gif_feed(void) {
    static const tern_feed_format format = {.step = gifStep, .start = gifStart};
    gif_feed *gif = calloc(1, sizeof *gif);
    if (!gif) return NULL;
    gif->transparent = -1;
    gif->feed.format = &format;
    return &gif->feed;
}
#endif
