// Decodes Windows and OS/2 bitmaps. Debian has no small library for them, and a decoder for the format fits in one
// file.
#include "bmp.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RGB = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, ALPHABITFIELDS = 6 };

static tern_codec_result corrupt(char *error, const char *what, uint32_t value) {
    snprintf(error, 160, "%s %u", what, (unsigned)value);
    return TERN_CODEC_CORRUPT;
}

/// Sets the error for pixels that lie within the headers. `where` names what they overlap. Offsets count from the
/// file's first byte.
static tern_codec_result within(char *error, size_t pixels, const char *where) {
    snprintf(error, 160, "the pixels begin at byte %zu, within the %s", pixels + 14, where);
    return TERN_CODEC_CORRUPT;
}

static tern_codec_result truncated(char *error, const char *where) {
    snprintf(error, 160, "the bytes end within the %s", where);
    return TERN_CODEC_TRUNCATED;
}

static tern_codec_result setMasks(tern_bmp *bmp, const uint32_t masks[4], char *error) {
    for (int i = 0; i < 4; i++) {
        uint32_t mask = bmp->bits == 16 ? masks[i] & 0xFFFF : masks[i];
        unsigned shift = 0, width = 0;
        while (mask && !(mask >> shift & 1)) shift++;
        while (shift + width < 32 && mask >> (shift + width) & 1) width++;
        if (mask && shift + width < 32 && mask >> (shift + width))
            return corrupt(error, "the bits of a colour mask do not lie together:", mask);
        bmp->channels[i].mask = mask;
        bmp->channels[i].shift = shift;
        bmp->channels[i].width = width;
    }
    return TERN_CODEC_OK;
}

tern_codec_result tern_dib_open(
    tern_bmp *bmp, const uint8_t *bytes, size_t count, size_t pixels, bool icon, char *error) {
    if (count < 4) return truncated(error, "header");
    uint32_t size = tern_le32(bytes);
    if (size != 12 && (size < 16 || size > 1024)) return corrupt(error, "a header of an impossible size:", size);
    if (count < size) return truncated(error, "header");
    // A header that is shorter than the longest one, BITMAPV5HEADER, leaves the rest at 0.
    uint8_t header[124] = {0};
    memcpy(header, bytes, size < 124 ? size : 124);
    bool core = size == 12;
    int64_t width = core ? (int32_t)tern_le16(header + 4) : (int32_t)tern_le32(header + 4);
    int64_t height = core ? (int32_t)tern_le16(header + 6) : (int32_t)tern_le32(header + 8);
    bmp->bits = core ? tern_le16(header + 10) : tern_le16(header + 14);
    bmp->compression = core ? RGB : tern_le32(header + 16);
    bmp->topDown = height < 0;
    if (height < 0) height = -height;
    if (icon) height /= 2;
    if (width <= 0 || height <= 0) return corrupt(error, "a width or height of", 0);
    bmp->bytes = bytes;
    bmp->count = count;
    bmp->width = (uint32_t)width;
    bmp->height = (uint32_t)height;
    bmp->stride = ((size_t)width * bmp->bits + 31) / 32 * 4;
    bmp->line = ((size_t)width * bmp->bits + 7) / 8;
    bool masked = (bmp->compression == BITFIELDS && size != 64) || bmp->compression == ALPHABITFIELDS;
    if (bmp->compression != RGB && !masked && bmp->compression != RLE8 && bmp->compression != RLE4) {
        snprintf(error, 160, "compression %u of a bitmap", bmp->compression);
        return TERN_CODEC_UNSUPPORTED;
    }
    if (bmp->bits != 1 && bmp->bits != 2 && bmp->bits != 4 && bmp->bits != 8 && bmp->bits != 16 && bmp->bits != 24
        && bmp->bits != 32)
        return corrupt(error, "bits a pixel:", bmp->bits);
    if ((bmp->compression == RLE8 && bmp->bits != 8) || (bmp->compression == RLE4 && bmp->bits != 4)
        || (masked && bmp->bits < 16))
        return corrupt(error, "a compression that does not go with bits a pixel:", bmp->bits);
    size_t at = size;
    uint32_t masks[4] = {0xFF0000, 0xFF00, 0xFF, icon && bmp->bits == 32 ? 0xFF000000 : 0};
    if (bmp->bits == 16) memcpy(masks, (uint32_t[]){0x7C00, 0x3E0, 0x1F, 0}, sizeof masks);
    if (masked) {
        // The masks are part of the header from its second version on, and follow the header in the first version.
        size_t wanted = size >= 56 || bmp->compression == ALPHABITFIELDS ? 4 : 3;
        size_t from = size >= 52 ? 40 : at;
        if (size < 52) at += wanted * 4;
        if (count < from + wanted * 4) return truncated(error, "colour masks");
        for (size_t i = 0; i < wanted; i++) masks[i] = tern_le32(bytes + from + i * 4);
    }
    tern_codec_result result = setMasks(bmp, masks, error);
    if (result != TERN_CODEC_OK) return result;
    if (pixels && pixels < at) return within(error, pixels, "header");
    size_t entry = core ? 3 : 4, used = tern_le32(header + 32);
    if (bmp->bits <= 8) {
        size_t most = (size_t)1 << bmp->bits;
        if (used == 0 || used > most) used = most;
        // Some writers leave the colour table out of the pixels' position. In other files the pixels begin within the
        // table, because it has fewer colours than stated. Pillow reads both in this way.
        if (pixels == at) pixels += used * entry;
        bool overlaps = pixels && pixels < at + used * entry;
        if (overlaps && count >= at && used > (count - at) / entry) used = (count - at) / entry;
        if (count < at + used * entry) return truncated(error, "colours");
        for (size_t i = 0; i < 256; i++) {
            const uint8_t *from = bytes + at + i * entry;
            bmp->palette[i][3] = 255;
            for (int c = 0; c < 3 && i < used; c++) bmp->palette[i][c] = from[2 - c];
        }
    }
    // A colour table that the picture does not need is advice for old screens. In an icon it precedes the pixels.
    bmp->pixels = pixels ? pixels : at + used * entry;
    bmp->at = bmp->pixels;
    if (size >= 124 && tern_le32(header + 56) == 0x4D424544) {
        bmp->profile = tern_le32(header + 112);
        bmp->profileCount = tern_le32(header + 116);
        bmp->hasProfile = bmp->profileCount > 0;
        if (bmp->profile > count || bmp->profileCount > count - bmp->profile) bmp->profileCount = 0;
    }
    return TERN_CODEC_OK;
}

tern_bmp *tern_bmp_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error) {
    tern_bmp *bmp = calloc(1, sizeof *bmp);
    *result = TERN_CODEC_MEMORY;
    if (!bmp) return NULL;
    size_t pixels = count < 14 ? 0 : tern_le32(bytes + 10);
    if (count < 14) *result = truncated(error, "header");
    else if (pixels != 0 && pixels < 26) *result = within(error, pixels - 14, "header");
    else *result = tern_dib_open(bmp, bytes + 14, count - 14, pixels ? pixels - 14 : 0, false, error);
    if (*result != TERN_CODEC_OK) { free(bmp); return NULL; }
    *info = (tern_codec_info){.width = bmp->width, .height = bmp->height, .orientation = 1, .frameCount = 1,
                              .hasAlpha = bmp->bits > 8 && bmp->channels[3].mask,
                              .hasProfile = bmp->hasProfile};
    return bmp;
}

const uint8_t *tern_bmp_profile(const tern_bmp *bmp, size_t *count, int *channels) {
    *count = bmp->profileCount;
    *channels = TERN_CHANNELS_RGB;
    return bmp->profileCount > 0 ? bmp->bytes + bmp->profile : NULL;
}

/// Returns a channel of a pixel as 8 bits. A narrower channel is scaled and rounded down, as in Pillow. A wider channel
/// is reduced to its highest bits.
static inline uint8_t channel(const tern_bmp *bmp, int index, uint32_t pixel) {
    unsigned width = bmp->channels[index].width;
    uint32_t value = (pixel & bmp->channels[index].mask) >> bmp->channels[index].shift;
    if (width == 8 || width == 0) return (uint8_t)value;
    return width > 8 ? (uint8_t)(value >> (width - 8)) : (uint8_t)(value * 255 / ((1u << width) - 1));
}

static void readIndices(const tern_bmp *bmp, const uint8_t *source, uint8_t *target) {
    unsigned bits = bmp->bits, last = (1u << bits) - 1;
    for (uint32_t x = 0; bits == 8 && x < bmp->width; x++) memcpy(target + (size_t)x * 4, bmp->palette[source[x]], 4);
    for (size_t x = 0; bits < 8 && x < bmp->width; x++)
        memcpy(target + x * 4, bmp->palette[source[x * bits / 8] >> (8 - bits - x * bits % 8) & last], 4);
}

/// Reads pixels of blue, green and red. A fourth byte, if present, has no meaning.
static void readPlain(const tern_bmp *bmp, const uint8_t *source, uint8_t *target) {
    size_t step = bmp->bits / 8;
    for (uint32_t x = 0; x < bmp->width; x++, source += step, target += 4) {
        target[0] = source[2];
        target[1] = source[1];
        target[2] = source[0];
        target[3] = 255;
    }
}

static void readMasked(tern_bmp *bmp, const uint8_t *source, uint8_t *target) {
    unsigned step = bmp->bits / 8;
    for (uint32_t x = 0; x < bmp->width; x++, source += step, target += 4) {
        uint32_t pixel = 0;
        for (unsigned i = 0; i < step; i++) pixel |= (uint32_t)source[i] << 8 * i;
        for (int c = 0; c < 3; c++) target[c] = channel(bmp, c, pixel);
        target[3] = bmp->channels[3].mask ? channel(bmp, 3, pixel) : 255;
        if (target[3]) bmp->alphaSeen = true;
    }
}

static void readRow(tern_bmp *bmp, const uint8_t *source, uint8_t *target) {
    bool plain = bmp->bits >= 24 && bmp->channels[0].mask == 0xFF0000 && bmp->channels[1].mask == 0xFF00
        && bmp->channels[2].mask == 0xFF && !bmp->channels[3].mask;
    if (bmp->bits <= 8) readIndices(bmp, source, target);
    else if (plain) readPlain(bmp, source, target);
    else readMasked(bmp, source, target);
}

/// Returns the row of the buffer that the stream is at.
static uint8_t *current(const tern_bmp *bmp, tern_canvas canvas) {
    return canvas.pixels + canvas.stride * (bmp->topDown ? bmp->row : bmp->height - 1 - bmp->row);
}

/// Fills a row with the first colour, which shows where a run-length stream draws nothing.
static void clearRow(const tern_bmp *bmp, tern_canvas canvas) {
    if (bmp->row >= bmp->height) return;
    uint8_t *row = current(bmp, canvas);
    for (uint32_t x = 0; x < bmp->width; x++) memcpy(row + (size_t)x * 4, bmp->palette[0], 4);
}

static void put(tern_bmp *bmp, uint8_t *row, uint8_t index) {
    if (bmp->column < bmp->width) memcpy(row + (size_t)bmp->column++ * 4, bmp->palette[index], 4);
}

/// Draws a run of one index, or a series of single indices. Ignores pixels beyond the right edge.
static void run(tern_bmp *bmp, uint8_t *row, const uint8_t *source, unsigned length, bool same) {
    for (unsigned i = 0; i < length; i++) {
        if (bmp->bits == 8) put(bmp, row, source[same ? 0 : i]);
        else put(bmp, row, (uint8_t)(i & 1 ? source[same ? 0 : i / 2] & 15 : source[same ? 0 : i / 2] >> 4));
    }
}

static tern_codec_result runRows(tern_bmp *bmp, tern_canvas canvas, uint32_t rows, char *error) {
    uint32_t last = rows < bmp->height - bmp->row ? bmp->row + rows : bmp->height;
    if (!bmp->started) clearRow(bmp, canvas);
    bmp->started = true;
    // The number of commands is limited, because commands that draw nothing take time, too.
    for (unsigned commands = 0; bmp->row < last && !bmp->ended && commands < 1u << 16; commands++) {
        if (bmp->at > bmp->count || bmp->count - bmp->at < 2) {
            // Only the code for the end is missing.
            bool isFull = bmp->row == bmp->height - 1 && bmp->column >= bmp->width;
            if (!isFull) return truncated(error, "pixels");
            bmp->ended = true;
            break;
        }
        unsigned length = bmp->bytes[bmp->at], value = bmp->bytes[bmp->at + 1];
        bmp->at += 2;
        if (length > 0) {
            run(bmp, current(bmp, canvas), bmp->bytes + bmp->at - 1, length, true);
        } else if (value > 2) {
            size_t bytes = bmp->bits == 8 ? value : (value + 1) / 2, padded = (bytes + 1) & ~(size_t)1;
            if (bmp->count - bmp->at < bytes) return truncated(error, "pixels");
            run(bmp, current(bmp, canvas), bmp->bytes + bmp->at, value, false);
            bmp->at += bmp->count - bmp->at < padded ? bytes : padded;
        } else if (value == 1) {
            bmp->ended = bmp->hasEndCode = true;
        } else {
            unsigned right = 0, down = 1;
            if (value == 0) {
                bmp->column = 0;
            } else {
                if (bmp->count - bmp->at < 2) return truncated(error, "pixels");
                right = bmp->bytes[bmp->at];
                down = bmp->bytes[bmp->at + 1];
                bmp->at += 2;
            }
            bmp->column = bmp->width - bmp->column < right ? bmp->width : bmp->column + right;
            for (; down > 0 && bmp->row < bmp->height; down--) {
                bmp->row++;
                clearRow(bmp, canvas);
            }
        }
    }
    for (; bmp->ended && bmp->row < last; clearRow(bmp, canvas)) bmp->row++;
    return bmp->row < bmp->height ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

tern_codec_result tern_bmp_rows(tern_bmp *bmp, tern_canvas canvas, uint32_t rows, char *error) {
    if (!tern_canvas_fits(canvas, bmp->width, bmp->height, error)) return TERN_CODEC_CORRUPT;
    if (bmp->compression == RLE8 || bmp->compression == RLE4) return runRows(bmp, canvas, rows, error);
    for (uint32_t done = 0; done < rows && bmp->row < bmp->height; done++, bmp->row++) {
        if (bmp->at > bmp->count || bmp->count - bmp->at < bmp->line) return truncated(error, "pixels");
        readRow(bmp, bmp->bytes + bmp->at, current(bmp, canvas));
        bmp->at += bmp->stride;
    }
    return bmp->row < bmp->height ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

bool tern_bmp_has_end(const tern_bmp *bmp) {
    if (bmp->row < bmp->height || bmp->at > bmp->count) return false;
    bool isRun = bmp->compression == RLE8 || bmp->compression == RLE4;
    // A stream can go on to the end of its last row before the code.
    return !isRun || bmp->hasEndCode
        || (bmp->count - bmp->at >= 2 && bmp->bytes[bmp->at] == 0 && bmp->bytes[bmp->at + 1] == 1);
}

void tern_bmp_close(tern_bmp *bmp) { free(bmp); }
