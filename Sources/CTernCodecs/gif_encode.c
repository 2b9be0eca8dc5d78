#include "gif_palette.h"

#if defined(__linux__)
#if !__has_include(<gif_lib.h>)
#error "TernImages needs giflib's headers: install the Debian package libgif-dev (Fedora: giflib-devel)"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gif_lib.h>

enum { MOST_SIDE = 65535, MOST_PIXELS = 1 << 28, KEEP = 1, CLEAR = 2 };

struct tern_gif_writer {
    uint32_t width, height;
    GifFileType *file;
    uint8_t *bytes;
    size_t count, capacity;
    tern_gif_palette *palette;
    // The picture that the frames before the pending one show, and the pending frame, which is written when the next one
    // is known; NULL before the first. Alpha is 0 or 255, and the colours of transparent pixels are 0.
    uint8_t *shown, *pending;
    uint32_t pendingTime;
    // The written rectangle: for each pixel its colour, whether it is drawn, and its index.
    uint8_t *part, *mask, *indices;
};

static int writeBytes(GifFileType *file, const GifByteType *bytes, int count) {
    tern_gif_writer *writer = file->UserData;
    size_t more = (size_t)count;
    if (more > writer->capacity - writer->count) {
        size_t capacity = (writer->count + more) * 2 + 4096;
        uint8_t *grown = realloc(writer->bytes, capacity);
        if (!grown) return 0;
        writer->bytes = grown;
        writer->capacity = capacity;
    }
    memcpy(writer->bytes + writer->count, bytes, more);
    writer->count += more;
    return count;
}

/// Writes the number of repetitions, 0 for endless, in the extension that all readers know.
static bool putLoops(GifFileType *file, unsigned again) {
    const uint8_t content[] = {1, (uint8_t)again, (uint8_t)(again >> 8)};
    return EGifPutExtensionLeader(file, APPLICATION_EXT_FUNC_CODE) == GIF_OK
        && EGifPutExtensionBlock(file, 11, "NETSCAPE2.0") == GIF_OK
        && EGifPutExtensionBlock(file, sizeof content, content) == GIF_OK
        && EGifPutExtensionTrailer(file) == GIF_OK;
}

tern_gif_writer *tern_gif_writer_open(uint32_t width, uint32_t height, uint32_t loops, char *error) {
    if (width == 0 || height == 0 || width > MOST_SIDE || height > MOST_SIDE
        || (uint64_t)width * height > MOST_PIXELS) {
        snprintf(error, 160, "a GIF has at most 65535 pixels a side, and here 268435456 in all");
        return NULL;
    }
    const size_t pixels = (size_t)width * height;
    tern_gif_writer *writer = calloc(1, sizeof *writer);
    if (!writer) return NULL;
    writer->width = width;
    writer->height = height;
    writer->palette = tern_gif_palette_open();
    writer->shown = calloc(pixels, 4);
    writer->part = malloc(pixels * 4);
    writer->mask = malloc(pixels);
    writer->indices = malloc(pixels);
    int code = 0;
    if (writer->palette && writer->shown && writer->part && writer->mask && writer->indices)
        writer->file = EGifOpen(writer, writeBytes, &code);
    if (writer->file) {
        EGifSetGifVersion(writer->file, true);
        if (EGifPutScreenDesc(writer->file, (int)width, (int)height, 8, 0, NULL) == GIF_OK
            && (loops == 1 || putLoops(writer->file, loops == 0 ? 0 : loops > 65536 ? 65535 : loops - 1)))
            return writer;
    }
    tern_gif_writer_close(writer);
    return NULL;
}

typedef struct { uint32_t left, top, right, bottom; } area;

/// Returns the smallest rectangle with all pixels that differ from the shown picture; one pixel if there are none.
static area changes(const tern_gif_writer *writer) {
    area found = {writer->width, writer->height, 0, 0};
    for (uint32_t y = 0; y < writer->height; y++) {
        const size_t row = (size_t)y * writer->width * 4;
        const uint8_t *new = writer->pending + row, *old = writer->shown + row;
        if (!memcmp(new, old, (size_t)writer->width * 4)) continue;
        uint32_t left = 0, right = writer->width;
        while (!memcmp(new + (size_t)left * 4, old + (size_t)left * 4, 4)) left++;
        while (!memcmp(new + (size_t)(right - 1) * 4, old + (size_t)(right - 1) * 4, 4)) right--;
        if (found.top == writer->height) found.top = y;
        found.bottom = y + 1;
        if (left < found.left) found.left = left;
        if (right > found.right) found.right = right;
    }
    return found.bottom > 0 ? found : (area){0, 0, 1, 1};
}

/// Writes the pending frame, of which `disposal` says whether it stays or is cleared before the next one.
static tern_codec_result putPending(tern_gif_writer *writer, int disposal, char *error) {
    const area all = {0, 0, writer->width, writer->height}, drawn = disposal == CLEAR ? all : changes(writer);
    const size_t width = drawn.right - drawn.left, height = drawn.bottom - drawn.top, count = width * height;
    // A cleared frame has a transparent index, because some readers fill with the background's colour otherwise.
    bool hasHoles = disposal == CLEAR;
    for (size_t y = 0; y < height; y++) {
        const size_t at = ((drawn.top + y) * writer->width + drawn.left) * 4;
        memcpy(writer->part + y * width * 4, writer->pending + at, width * 4);
        for (size_t x = 0; x < width; x++) {
            const uint8_t *new = writer->pending + at + x * 4, *old = writer->shown + at + x * 4;
            const bool isDrawn = new[3] != 0 && (old[3] == 0 || memcmp(new, old, 4));
            writer->mask[y * width + x] = isDrawn;
            hasHoles |= !isDrawn;
        }
    }
    const unsigned most = hasHoles ? 255 : 256;
    const unsigned colors = tern_gif_palette_choose(writer->palette, writer->part, writer->mask, count, most);
    unsigned size = 2;
    while (size < colors + hasHoles) size *= 2;
    ColorMapObject *map = GifMakeMapObject((int)size, NULL);
    if (!map) return TERN_CODEC_MEMORY;
    for (unsigned i = 0; i < colors; i++) {
        const uint8_t *color = tern_gif_palette_color(writer->palette, i);
        map->Colors[i] = (GifColorType){color[0], color[1], color[2]};
    }
    // The index behind the colours is the transparent one.
    memset(writer->indices, (int)colors, count);
    const GraphicsControlBlock control = {
        .DisposalMode = disposal, .DelayTime = (int)writer->pendingTime,
        .TransparentColor = hasHoles ? (int)colors : NO_TRANSPARENT_COLOR};
    GifByteType block[4];
    bool isWritten = tern_gif_palette_map(writer->palette, writer->part, writer->mask, width, height, writer->indices)
        && EGifGCBToExtension(&control, block) == sizeof block
        && EGifPutExtension(writer->file, GRAPHICS_EXT_FUNC_CODE, sizeof block, block) == GIF_OK
        && EGifPutImageDesc(
            writer->file, (int)drawn.left, (int)drawn.top, (int)width, (int)height, false, map) == GIF_OK;
    GifFreeMapObject(map);
    for (size_t y = 0; y < height && isWritten; y++)
        isWritten = EGifPutLine(writer->file, writer->indices + y * width, (int)width) == GIF_OK;
    if (isWritten) return TERN_CODEC_OK;
    snprintf(error, 160, "no memory for the frame");
    return TERN_CODEC_MEMORY;
}

tern_codec_result tern_gif_writer_add(
    tern_gif_writer *writer, const uint8_t *pixels, size_t stride, uint32_t hundredths, char *error) {
    uint8_t *next = malloc((size_t)writer->width * writer->height * 4);
    if (!next) { snprintf(error, 160, "no memory for the frame"); return TERN_CODEC_MEMORY; }
    // Whether a pixel that is drawn becomes transparent, which no frame can do: the frame before it is cleared instead.
    bool clears = false;
    for (uint32_t y = 0; y < writer->height; y++) {
        const uint8_t *source = pixels + stride * y;
        size_t at = (size_t)y * writer->width * 4;
        for (uint32_t x = 0; x < writer->width; x++, source += 4, at += 4) {
            const bool isOpaque = source[3] >= 128;
            memcpy(next + at, source, 3);
            next[at + 3] = 255;
            if (!isOpaque) memset(next + at, 0, 4);
            clears |= !isOpaque && writer->pending && writer->pending[at + 3];
        }
    }
    if (writer->pending) {
        tern_codec_result result = putPending(writer, clears ? CLEAR : KEEP, error);
        if (result != TERN_CODEC_OK) { free(next); return result; }
        free(writer->shown);
        writer->shown = writer->pending;
        if (clears) memset(writer->shown, 0, (size_t)writer->width * writer->height * 4);
    }
    writer->pending = next;
    writer->pendingTime = hundredths > 65535 ? 65535 : hundredths;
    return TERN_CODEC_OK;
}

uint8_t *tern_gif_writer_finish(tern_gif_writer *writer, size_t *count, char *error) {
    if (!writer->pending) { snprintf(error, 160, "there are no frames"); return NULL; }
    if (putPending(writer, KEEP, error) != TERN_CODEC_OK) return NULL;
    int code = 0;
    GifFileType *file = writer->file;
    writer->file = NULL;
    if (EGifCloseFile(file, &code) != GIF_OK) { snprintf(error, 160, "no memory for the file"); return NULL; }
    uint8_t *bytes = writer->bytes;
    writer->bytes = NULL;
    *count = writer->count;
    return bytes;
}

void tern_gif_writer_close(tern_gif_writer *writer) {
    if (!writer) return;
    int code = 0;
    if (writer->file) EGifCloseFile(writer->file, &code);
    tern_gif_palette_close(writer->palette);
    free(writer->shown);
    free(writer->pending);
    free(writer->part);
    free(writer->mask);
    free(writer->indices);
    free(writer->bytes);
    free(writer);
}
#endif
