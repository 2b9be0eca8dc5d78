#include "CTernCodecs.h"
#include "memory.h"

#if defined(__linux__)
#if !__has_include(<gif_lib.h>)
#error "TernImages needs giflib's headers: install the Debian package libgif-dev (Fedora: giflib-devel)"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gif_lib.h>

struct tern_gif {
    const uint8_t *bytes;
    size_t count, offset;
    uint32_t width, height;
    GifFileType *file;
    uint8_t *canvas, *saved, *line;
    // The disposal of the last frame shown, which is applied before the next frame is drawn, and the frame's rectangle.
    int disposal;
    uint32_t left, top, right, bottom;
    uint32_t number;
};

/// Translates an error of giflib into the result for the current frame, and into a text that needs no look-up.
static tern_codec_result translate(const tern_gif *gif, int code, char *error) {
    bool isOver = gif->offset >= gif->count;
    const char *text = "its data are damaged";
    switch (code) {
    case D_GIF_ERR_NOT_ENOUGH_MEM: snprintf(error, 160, "no memory for the frame"); return TERN_CODEC_MEMORY;
    case D_GIF_ERR_EOF_TOO_SOON: text = "its codes end before its pixels"; break;
    case D_GIF_ERR_WRONG_RECORD: text = "a block of an unknown kind in its place"; break;
    case D_GIF_ERR_NO_COLOR_MAP: text = "it has no colours"; break;
    case D_GIF_ERR_DATA_TOO_BIG: text = "more pixels than its size"; break;
    default: break;
    }
    if (isOver) snprintf(error, 160, "the bytes end within frame %u", gif->number);
    else snprintf(error, 160, "frame %u cannot be read: %s", gif->number, text);
    return isOver ? TERN_CODEC_TRUNCATED : TERN_CODEC_CORRUPT;
}

static int readBytes(GifFileType *file, GifByteType *target, int wanted) {
    tern_gif *gif = file->UserData;
    size_t left = gif->count - gif->offset, given = (size_t)wanted < left ? (size_t)wanted : left;
    memcpy(target, gif->bytes + gif->offset, given);
    gif->offset += given;
    return (int)given;
}

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
    if (gif->file) DGifCloseFile(gif->file, NULL);
    gif->offset = 0;
    gif->disposal = 0;
    gif->number = 0;
    int code = 0;
    gif->file = DGifOpen(gif, readBytes, &code);
    if (!gif->file) return translate(gif, code, error);
    size_t size = (size_t)gif->width * gif->height * 4;
    if (!gif->canvas) {
        gif->canvas = malloc(size);
        gif->line = malloc(65536);
    }
    if (!gif->canvas || !gif->line) return TERN_CODEC_MEMORY;
    memset(gif->canvas, 0, size);
    return TERN_CODEC_OK;
}

static void dispose(tern_gif *gif) {
    for (uint32_t y = gif->top; y < gif->bottom; y++) {
        size_t at = ((size_t)y * gif->width + gif->left) * 4, length = (size_t)(gif->right - gif->left) * 4;
        if (gif->disposal == DISPOSE_BACKGROUND) memset(gif->canvas + at, 0, length);
        if (gif->disposal == DISPOSE_PREVIOUS && gif->saved) memcpy(gif->canvas + at, gif->saved + at, length);
    }
}

static tern_codec_result ended(const tern_gif *gif, char *error) { return translate(gif, gif->file->Error, error); }

static tern_codec_result draw(tern_gif *gif, int transparent, char *error) {
    const GifImageDesc *image = &gif->file->Image;
    const ColorMapObject *map = image->ColorMap ? image->ColorMap : gif->file->SColorMap;
    uint32_t width = (uint32_t)image->Width, height = (uint32_t)image->Height;
    // A frame far larger than its screen takes time without showing more.
    if (!map || width == 0 || height == 0
        || (uint64_t)width * height > 4 * (uint64_t)gif->width * gif->height + 65536) {
        snprintf(error, 160, map ? "a frame of %u by %u pixels" : "a frame of %u by %u pixels without colours", width,
                 height);
        return TERN_CODEC_CORRUPT;
    }
    static const uint32_t offsets[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    uint32_t pass = 0, y = 0;
    for (uint32_t row = 0; row < height; row++) {
        if (DGifGetLine(gif->file, gif->line, (int)width) == GIF_ERROR) return ended(gif, error);
        while (image->Interlace && y >= height && pass < 3) y = offsets[++pass];
        for (uint32_t x = gif->left; x < gif->right && (uint32_t)image->Top + y < gif->height; x++) {
            int index = gif->line[x - gif->left];
            if (index == transparent || index >= map->ColorCount) continue;
            uint8_t *pixel = gif->canvas + (((size_t)image->Top + y) * gif->width + x) * 4;
            pixel[0] = map->Colors[index].Red;
            pixel[1] = map->Colors[index].Green;
            pixel[2] = map->Colors[index].Blue;
            pixel[3] = 255;
        }
        y += image->Interlace ? steps[pass] : 1;
    }
    return TERN_CODEC_OK;
}

tern_codec_result tern_gif_next(tern_gif *gif, tern_canvas canvas, uint32_t *milliseconds, char *error) {
    if (!tern_canvas_fits(canvas, gif->width, gif->height, error)) return TERN_CODEC_CORRUPT;
    if (!gif->file) {
        tern_codec_result opened = tern_gif_rewind(gif, error);
        if (opened != TERN_CODEC_OK) return opened;
    }
    GraphicsControlBlock control = {.TransparentColor = NO_TRANSPARENT_COLOR};
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    while (record != IMAGE_DESC_RECORD_TYPE) {
        if (DGifGetRecordType(gif->file, &record) == GIF_ERROR) return ended(gif, error);
        if (record == TERMINATE_RECORD_TYPE) {
            snprintf(error, 160, "the file ends before frame %u", gif->number);
            return TERN_CODEC_CORRUPT;
        }
        if (record != EXTENSION_RECORD_TYPE) continue;
        int code = 0;
        GifByteType *block = NULL;
        if (DGifGetExtension(gif->file, &code, &block) == GIF_ERROR) return ended(gif, error);
        if (code == GRAPHICS_EXT_FUNC_CODE && block) DGifExtensionToGCB(block[0], block + 1, &control);
        while (block)
            if (DGifGetExtensionNext(gif->file, &block) == GIF_ERROR) return ended(gif, error);
    }
    if (DGifGetImageDesc(gif->file) == GIF_ERROR) return ended(gif, error);
    dispose(gif);
    const GifImageDesc *image = &gif->file->Image;
    uint32_t right = (uint32_t)image->Left + (uint32_t)image->Width, bottom = (uint32_t)image->Top + (uint32_t)image->Height;
    gif->right = right < gif->width ? right : gif->width;
    gif->bottom = bottom < gif->height ? bottom : gif->height;
    gif->left = (uint32_t)image->Left < gif->right ? (uint32_t)image->Left : gif->right;
    gif->top = (uint32_t)image->Top < gif->bottom ? (uint32_t)image->Top : gif->bottom;
    gif->disposal = control.DisposalMode;
    size_t size = (size_t)gif->width * gif->height * 4;
    if (gif->disposal == DISPOSE_PREVIOUS) {
        if (!gif->saved) gif->saved = malloc(size);
        if (!gif->saved) return TERN_CODEC_MEMORY;
        memcpy(gif->saved, gif->canvas, size);
    }
    *milliseconds = (uint32_t)control.DelayTime * 10;
    tern_codec_result drawn = draw(gif, control.TransparentColor, error);
    if (drawn == TERN_CODEC_OK) gif->number++;
    // An incomplete frame is returned as far as it is decoded.
    for (uint32_t y = 0; y < gif->height; y++)
        memcpy(canvas.pixels + canvas.stride * y, gif->canvas + (size_t)y * gif->width * 4, (size_t)gif->width * 4);
    return drawn;
}

void tern_gif_close(tern_gif *gif) {
    if (!gif) return;
    if (gif->file) DGifCloseFile(gif->file, NULL);
    free(gif->canvas);
    free(gif->saved);
    free(gif->line);
    free(gif);
}
#endif
