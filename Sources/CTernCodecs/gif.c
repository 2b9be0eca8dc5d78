#include "CTernCodecs.h"
#include "lzw.h"
#include "memory.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAILER = 0x3B, EXTENSION = 0x21, IMAGE = 0x2C, CONTROL = 0xF9, TO_BACKGROUND = 2, TO_PREVIOUS = 3 };

struct tern_gif {
    const uint8_t *bytes;
    size_t count, offset;
    uint32_t width, height;
    tern_lzw *lzw;
    uint8_t *canvas, *saved;
    // The disposal of the last frame shown, which is applied before the next frame is drawn, and the frame's rectangle.
    int disposal;
    uint32_t left, top, right, bottom;
    uint32_t number;
    // The frame that is being drawn: its descriptor, its colours as RGBA with 0 for transparent ones, its rows, the number
    // of the row in the order of the file, its pass, and its position.
    const uint8_t *image;
    uint32_t colors[256], milliseconds, rows, row, pass, y;
};

static uint32_t pair(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }

static tern_codec_result ended(const tern_gif *gif, const char *text, char *error) {
    bool isOver = gif->offset >= gif->count;
    if (isOver) snprintf(error, 160, "the bytes end within frame %u", gif->number);
    else snprintf(error, 160, "frame %u cannot be read: %s", gif->number, text);
    return isOver ? TERN_CODEC_TRUNCATED : TERN_CODEC_CORRUPT;
}

/// Returns the next bytes; NULL, and no more bytes, if there are fewer.
static const uint8_t *take(tern_gif *gif, size_t wanted) {
    const uint8_t *at = wanted <= gif->count - gif->offset ? gif->bytes + gif->offset : NULL;
    gif->offset = at ? gif->offset + wanted : gif->count;
    return at;
}

/// Returns the next sub-block, which begins with its size; NULL if the bytes end within it.
static const uint8_t *takeBlock(tern_gif *gif) {
    const uint8_t *size = take(gif, 1);
    return size && take(gif, *size) ? size : NULL;
}

/// Returns the number of bytes of the colours that the flags announce.
static size_t colorBytes(uint8_t flags) { return flags & 0x80 ? (size_t)6 << (flags & 7) : 0; }

tern_gif *tern_gif_open(
    const uint8_t *bytes, size_t count, uint32_t frameLimit, tern_codec_info *info, int *result, char *error) {
    *result = TERN_CODEC_TRUNCATED;
    snprintf(error, 160, "the bytes end within the header");
    if (count < 13) return NULL;
    tern_gif_blocks blocks = tern_gif_walk(bytes, count, frameLimit);
    *info = (tern_codec_info){.width = blocks.width, .height = blocks.height, .orientation = 1, .hasAlpha = true,
                              .frameCount = blocks.frames, .loopCount = blocks.loops,
                              .isAnimation = blocks.frames > 1, .isCut = blocks.isCut};
    info->memory = tern_gif_memory(info->width, info->height);
    if (blocks.frames == 0) {
        snprintf(error, 160, blocks.isCut ? "the bytes end before the first frame" : "no frame");
        *result = blocks.isCut ? TERN_CODEC_TRUNCATED : TERN_CODEC_CORRUPT;
        return NULL;
    }
    tern_gif *gif = calloc(1, sizeof *gif);
    *result = TERN_CODEC_MEMORY;
    if (!gif) return NULL;
    gif->bytes = bytes;
    gif->count = count;
    gif->width = info->width;
    gif->height = info->height;
    *result = TERN_CODEC_OK;
    return gif;
}

tern_codec_result tern_gif_rewind(tern_gif *gif, char *error) {
    gif->offset = 0;
    gif->disposal = 0;
    gif->number = 0;
    gif->image = NULL;
    if (!take(gif, 13 + colorBytes(gif->bytes[10]))) return ended(gif, "", error);
    size_t size = (size_t)gif->width * gif->height * 4;
    if (!gif->canvas) {
        gif->canvas = malloc(size);
        gif->lzw = calloc(1, sizeof *gif->lzw);
    }
    if (!gif->canvas || !gif->lzw) return TERN_CODEC_MEMORY;
    memset(gif->canvas, 0, size);
    return TERN_CODEC_OK;
}

static void dispose(tern_gif *gif) {
    for (uint32_t y = gif->top; y < gif->bottom; y++) {
        size_t at = ((size_t)y * gif->width + gif->left) * 4, length = (size_t)(gif->right - gif->left) * 4;
        if (gif->disposal == TO_BACKGROUND) memset(gif->canvas + at, 0, length);
        if (gif->disposal == TO_PREVIOUS && gif->saved) memcpy(gif->canvas + at, gif->saved + at, length);
    }
}

/// Reads up to the codes of the next frame, and disposes of the frame before it.
static tern_codec_result begin(tern_gif *gif, char *error) {
    uint8_t control[5] = {0};
    const uint8_t *at;
    while ((at = take(gif, 1)) && *at != IMAGE) {
        if (*at == TRAILER) {
            snprintf(error, 160, "the file ends before frame %u", gif->number);
            return TERN_CODEC_CORRUPT;
        }
        if (*at != EXTENSION) return ended(gif, "a block of an unknown kind in its place", error);
        const uint8_t *code = take(gif, 1), *content = code ? takeBlock(gif) : NULL;
        if (content && *code == CONTROL && *content == 4) memcpy(control, content, sizeof control);
        while (content && *content) content = takeBlock(gif);
        if (!content) return ended(gif, "", error);
    }
    const uint8_t *image = at ? take(gif, 9) : NULL;
    size_t own = image ? colorBytes(image[8]) : 0, count = own ? own : colorBytes(gif->bytes[10]);
    const uint8_t *map = image ? take(gif, own) : NULL, *size = map ? take(gif, 1) : NULL;
    if (!size) return ended(gif, "", error);
    uint32_t width = pair(image + 4), height = pair(image + 6);
    // A frame without a size has that of the screen, as in browsers. An enlarged canvas can be wider than any frame.
    if (width == 0 || height == 0) {
        width = pair(gif->bytes + 6);
        height = pair(gif->bytes + 8);
    }
    const uint32_t right = pair(image) + width, bottom = pair(image + 2) + height;
    tern_lzw_start(gif->lzw, *size, width, height);
    if (gif->lzw->damage) return ended(gif, gif->lzw->damage, error);
    dispose(gif);
    gif->right = right < gif->width ? right : gif->width;
    gif->bottom = bottom < gif->height ? bottom : gif->height;
    gif->left = pair(image) < gif->right ? pair(image) : gif->right;
    gif->top = pair(image + 2) < gif->bottom ? pair(image + 2) : gif->bottom;
    gif->disposal = control[1] >> 2 & 7;
    gif->milliseconds = pair(control + 2) * 10;
    gif->row = gif->pass = gif->y = 0;
    gif->rows = height;
    gif->image = image;
    if (own == 0) map = gif->bytes + 13;
    const size_t transparent = control[1] & 1 ? control[4] : 256;
    memset(gif->colors, 0, sizeof gif->colors);
    for (size_t i = 0; i < count / 3; i++) {
        const uint8_t color[] = {map[i * 3], map[i * 3 + 1], map[i * 3 + 2], 255};
        if (i != transparent) memcpy(&gif->colors[i], color, sizeof color);
    }
    const size_t canvas = (size_t)gif->width * gif->height * 4;
    if (gif->disposal == TO_PREVIOUS) {
        if (!gif->saved) gif->saved = malloc(canvas);
        if (!gif->saved) return TERN_CODEC_MEMORY;
        memcpy(gif->saved, gif->canvas, canvas);
    }
    // A frame far larger than its screen takes time without showing more.
    if (width == 0 || height == 0 || (uint64_t)width * height > canvas + 65536) {
        snprintf(error, 160, "a frame of %u by %u pixels", width, height);
        return TERN_CODEC_CORRUPT;
    }
    // Without colours a frame shows nothing, whatever its codes are. Pages use such files of 1 by 1 pixel.
    if (count == 0) {
        const uint8_t *block;
        while ((block = takeBlock(gif)) && *block) {}
        if (!block) return ended(gif, "", error);
        gif->row = height;
    }
    return TERN_CODEC_OK;
}

/// Returns the next row of the frame; NULL if it is damaged or the bytes end within the frame.
static const uint8_t *nextRow(tern_gif *gif, bool isLast) {
    const uint8_t *row, *block;
    while (!(row = tern_lzw_row(gif->lzw)) && !gif->lzw->damage && (block = takeBlock(gif)))
        tern_lzw_block(gif->lzw, block);
    if (!row || !isLast) return row;
    // The last row is there if the frame's end is.
    while ((block = takeBlock(gif)) && *block) {}
    return block ? row : NULL;
}

static tern_codec_result draw(tern_gif *gif, uint32_t rows, char *error) {
    static const uint32_t offsets[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    const uint32_t top = pair(gif->image + 2), height = gif->rows;
    const bool isInterlaced = gif->image[8] & 0x40;
    for (; rows > 0 && gif->row < height; rows--, gif->row++) {
        const uint8_t *row = nextRow(gif, gif->row + 1 == height);
        if (!row) return ended(gif, gif->lzw->damage, error);
        while (isInterlaced && gif->y >= height && gif->pass < 3) gif->y = offsets[++gif->pass];
        uint32_t shown = top + gif->y < gif->height ? gif->right - gif->left : 0;
        uint8_t *pixel = gif->canvas + (((size_t)top + gif->y) * gif->width + gif->left) * 4;
        for (uint32_t x = 0; x < shown; x++, pixel += 4) {
            uint32_t old, new = gif->colors[row[x]];
            memcpy(&old, pixel, sizeof old);
            if (new == 0) new = old;
            memcpy(pixel, &new, sizeof new);
        }
        gif->y += isInterlaced ? steps[gif->pass] : 1;
    }
    return gif->row < height ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

tern_codec_result tern_gif_next(
    tern_gif *gif, tern_canvas canvas, uint32_t rows, uint32_t *milliseconds, char *error) {
    if (!tern_canvas_fits(canvas, gif->width, gif->height, error)) return TERN_CODEC_CORRUPT;
    tern_codec_result result = gif->lzw ? TERN_CODEC_OK : tern_gif_rewind(gif, error);
    if (result == TERN_CODEC_OK && !gif->image) result = begin(gif, error);
    if (result == TERN_CODEC_OK) result = draw(gif, rows, error);
    if (!gif->image || result == TERN_CODEC_MORE) return result;
    *milliseconds = gif->milliseconds;
    gif->image = NULL;
    if (result == TERN_CODEC_OK) gif->number++;
    // An incomplete frame is returned as far as it is decoded.
    for (uint32_t y = 0; y < gif->height; y++)
        memcpy(canvas.pixels + canvas.stride * y, gif->canvas + (size_t)y * gif->width * 4, (size_t)gif->width * 4);
    return result;
}

void tern_gif_close(tern_gif *gif) {
    if (!gif) return;
    free(gif->canvas);
    free(gif->saved);
    free(gif->lzw);
    free(gif);
}
#endif
