// Decodes Windows icons and cursors: a directory of PNG files and of bitmaps that have a mask and no file header.
#include "bmp.h"
#include "incremental.h"
#include "memory.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t index;
    size_t at, count;
    uint32_t width, height, bits;
    bool png;
} entry;

struct tern_ico {
    const uint8_t *bytes;
    size_t count;
    uint32_t entries;
    entry chosen;
    tern_bmp dib;
    tern_png *png;
    // The number of the mask's next row. It counts once the colours are complete.
    uint32_t maskRow;
    bool coloured;
};

/// Reads the size from a PNG file's header, which must be its first chunk. libpng also finds a header behind unknown
/// chunks.
static bool readHeader(const uint8_t *image, entry *found) {
    static const uint8_t header[] = {0, 0, 0, 13, 'I', 'H', 'D', 'R'};
    if (memcmp(image + 8, header, sizeof header)) return false;
    found->width = (uint32_t)image[16] << 24 | (uint32_t)image[17] << 16 | (uint32_t)image[18] << 8 | image[19];
    found->height = (uint32_t)image[20] << 24 | (uint32_t)image[21] << 16 | (uint32_t)image[22] << 8 | image[23];
    found->bits = 32;
    return true;
}

static bool refuse(char *reason, const char *text) {
    snprintf(reason, 100, "%s", text);
    return false;
}

/// Reads an entry with the size in its own header. The directory has only one byte for a size, and is often wrong.
/// Sets a reason of up to 100 characters if the entry is not a picture.
static bool readEntry(const tern_ico *ico, uint32_t index, entry *found, char *reason) {
    found->index = index;
    const uint8_t *at = ico->bytes + 6 + (size_t)index * 16;
    found->count = tern_le32(at + 8);
    found->at = tern_le32(at + 12);
    if (found->at > ico->count) return refuse(reason, "it begins behind the file's end");
    if (found->count > ico->count - found->at) found->count = ico->count - found->at;
    if (found->count < 24) return refuse(reason, "it has fewer bytes than a header");
    const uint8_t *image = ico->bytes + found->at;
    found->png = !memcmp(image, "\x89PNG\r\n\x1a\n", 8);
    if (found->png) {
        if (!readHeader(image, found)) return refuse(reason, "its PNG file does not begin with a header");
    } else {
        tern_bmp dib = {0};
        char error[160];
        if (tern_dib_open(&dib, image, found->count, 0, true, error) != TERN_CODEC_OK) return refuse(reason, error);
        found->width = dib.width;
        found->height = dib.height;
        found->bits = dib.bits;
    }
    return (found->width > 0 && found->height > 0) || refuse(reason, "its header states no pixels");
}

/// Returns whether the bytes end before an entry does. It is then unknown whether that entry is the wanted one.
static bool reachesBeyond(const tern_ico *ico, uint32_t index) {
    const uint8_t *at = ico->bytes + 6 + (size_t)index * 16;
    return (uint64_t)tern_le32(at + 8) + tern_le32(at + 12) > ico->count;
}

/// Returns whether the first entry serves the size better. An entry that is large enough is better than one that is too
/// small, then the size that is nearer, then more colours.
static bool better(const entry *a, const entry *b, uint32_t width, uint32_t height) {
    bool aServes = a->width >= width && a->height >= height, bServes = b->width >= width && b->height >= height;
    if (aServes != bServes) return aServes;
    uint64_t aSize = (uint64_t)a->width * a->height, bSize = (uint64_t)b->width * b->height;
    if (aSize != bSize) return aServes ? aSize < bSize : aSize > bSize;
    return a->bits > b->bits;
}

tern_ico *tern_ico_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error) {
    *result = TERN_CODEC_TRUNCATED;
    snprintf(error, 160, "the bytes end within the directory");
    if (count < 6 || count - 6 < (size_t)tern_le16(bytes + 4) * 16) return NULL;
    tern_ico *ico = calloc(1, sizeof *ico);
    *result = TERN_CODEC_MEMORY;
    if (!ico) return NULL;
    ico->bytes = bytes;
    ico->count = count;
    ico->entries = tern_le16(bytes + 4);
    *result = tern_ico_choose(ico, UINT32_MAX, UINT32_MAX, info, error);
    if (*result == TERN_CODEC_OK) return ico;
    free(ico);
    return NULL;
}

tern_codec_result tern_ico_choose(
    tern_ico *ico, uint32_t leastWidth, uint32_t leastHeight, tern_codec_info *info, char *error) {
    entry next;
    char reason[100], first[100] = "";
    bool isCut = false;
    ico->chosen.width = 0;
    for (uint32_t index = 0; index < ico->entries; index++) {
        if (!readEntry(ico, index, &next, reason)) {
            if (index == 0) memcpy(first, reason, sizeof first);
            isCut = isCut || reachesBeyond(ico, index);
            continue;
        }
        if (ico->chosen.width == 0 || better(&next, &ico->chosen, leastWidth, leastHeight)) ico->chosen = next;
    }
    if (ico->chosen.width == 0 && isCut) {
        snprintf(error, 160, "the bytes end before the first picture");
        return TERN_CODEC_TRUNCATED;
    }
    if (ico->chosen.width == 0) {
        snprintf(error, 160, "none of %u entries is a picture%s%s", ico->entries, first[0] ? ": entry 0: " : "", first);
        return TERN_CODEC_CORRUPT;
    }
    *info = (tern_codec_info){.width = ico->chosen.width, .height = ico->chosen.height, .orientation = 1,
                              .frameCount = 1, .hasAlpha = true, .isCut = isCut,
                              .memory = ico->chosen.png ? tern_png_memory(ico->chosen.width, 16, 4) : 0};
    return TERN_CODEC_OK;
}

uint32_t tern_ico_entry(const tern_ico *ico) { return ico->chosen.index; }

/// Clears the pixels that the mask hides. For 32-bit pixels, applies the mask only if no pixel has alpha, because such
/// icons are older than the meaning of the fourth byte.
static tern_codec_result maskRows(tern_ico *ico, tern_canvas canvas, uint32_t rows, char *error) {
    const tern_bmp *dib = &ico->dib;
    bool hasAlpha = dib->channels[3].mask != 0 && dib->bits > 8;
    if (hasAlpha && dib->alphaSeen) return TERN_CODEC_OK;
    // The last row needs no padding.
    size_t line = ((size_t)dib->width + 31) / 32 * 4, used = ((size_t)dib->width + 7) / 8;
    size_t at = dib->pixels + dib->stride * dib->height;
    for (uint32_t done = 0; done < rows && ico->maskRow < dib->height; done++, ico->maskRow++) {
        size_t from = at + line * ico->maskRow;
        bool missing = from > dib->count || dib->count - from < used;
        if (missing && !hasAlpha) {
            snprintf(error, 160, "the bytes end within the mask");
            return TERN_CODEC_TRUNCATED;
        }
        uint8_t *row = canvas.pixels + canvas.stride * (dib->topDown ? ico->maskRow : dib->height - 1 - ico->maskRow);
        for (uint32_t x = 0; x < dib->width; x++)
            row[(size_t)x * 4 + 3] = !missing && dib->bytes[from + x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
    }
    return ico->maskRow < dib->height ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

tern_codec_result tern_ico_rows(tern_ico *ico, tern_canvas canvas, uint32_t rows, char *error) {
    if (!tern_canvas_fits(canvas, ico->chosen.width, ico->chosen.height, error)) return TERN_CODEC_CORRUPT;
    const uint8_t *image = ico->bytes + ico->chosen.at;
    if (ico->chosen.png) {
        if (!ico->png) {
            tern_codec_info info;
            int result = TERN_CODEC_OK;
            ico->png = tern_png_open(image, ico->chosen.count, tern_no_limits, &info, &result, error);
            if (!ico->png) return result;
        }
        return tern_png_rows(ico->png, canvas, rows, error);
    }
    if (!ico->dib.bytes) {
        tern_codec_result opened = tern_dib_open(&ico->dib, image, ico->chosen.count, 0, true, error);
        if (opened != TERN_CODEC_OK) return opened;
    }
    if (ico->coloured) return maskRows(ico, canvas, rows, error);
    tern_codec_result result = tern_bmp_rows(&ico->dib, canvas, rows, error);
    ico->coloured = result == TERN_CODEC_OK;
    return ico->coloured ? TERN_CODEC_MORE : result;
}

void tern_ico_close(tern_ico *ico) {
    if (!ico) return;
    tern_png_close(ico->png);
    free(ico);
}
#endif
