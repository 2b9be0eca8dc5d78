// Decodes the Quite OK Image format, for which Debian has no library (qoiformat.org/qoi-specification.pdf).
#include "CTernCodecs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t r, g, b, a;
} pixel;

struct tern_qoi {
    const uint8_t *bytes;
    // The position of the next chunk, the end of the chunks, and that of the bytes.
    size_t at, end, count;
    uint32_t width, height, row;
    bool hasAlpha;
    // The pixel before, how often it is repeated, and the pixels seen, by their hash.
    pixel last, seen[64];
    unsigned run;
};

enum { headerCount = 14, markerCount = 8 };

/// Returns whether the marker of the end is at a position.
static bool isMarker(const uint8_t *bytes, size_t at, size_t count) {
    return count - at >= markerCount && !memcmp(bytes + at, "\0\0\0\0\0\0\0\1", markerCount);
}

static uint32_t number(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

tern_qoi *tern_qoi_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error) {
    *result = TERN_CODEC_TRUNCATED;
    snprintf(error, 160, "the bytes end within the header");
    if (count < headerCount) return NULL;
    const uint32_t width = number(bytes + 4), height = number(bytes + 8);
    const unsigned channels = bytes[12];
    *result = TERN_CODEC_CORRUPT;
    snprintf(error, 160, "%u channels of %u×%u pixels", channels, (unsigned)width, (unsigned)height);
    // A side has at most as many pixels as a signed number of 32 bits.
    if ((channels != 3 && channels != 4) || width == 0 || height == 0 || width >> 31 || height >> 31) return NULL;
    tern_qoi *qoi = calloc(1, sizeof *qoi);
    *result = TERN_CODEC_MEMORY;
    if (!qoi) return NULL;
    qoi->bytes = bytes;
    qoi->count = qoi->end = count;
    qoi->at = headerCount;
    // The marker is no chunk, although its bytes could be seven of them.
    if (count >= headerCount + markerCount && isMarker(bytes, count - markerCount, count)) qoi->end -= markerCount;
    qoi->width = width;
    qoi->height = height;
    qoi->hasAlpha = channels == 4;
    qoi->last.a = 255;
    *info = (tern_codec_info){.width = width, .height = height, .orientation = 1, .frameCount = 1,
                              .hasAlpha = qoi->hasAlpha};
    *result = TERN_CODEC_OK;
    return qoi;
}

/// Reads the next chunk. Returns false if the bytes end before it does.
static bool readChunk(tern_qoi *qoi) {
    const size_t left = qoi->end - qoi->at;
    if (left == 0) return false;
    const uint8_t *at = qoi->bytes + qoi->at, tag = at[0];
    pixel *last = &qoi->last;
    size_t length = 1;
    if (tag == 0xFE || tag == 0xFF) {
        length = tag == 0xFE ? 4 : 5;
        if (left < length) return false;
        *last = (pixel){at[1], at[2], at[3], tag == 0xFF ? at[4] : last->a};
    } else if (tag >> 6 == 0) {
        *last = qoi->seen[tag];
    } else if (tag >> 6 == 1) {
        last->r += (tag >> 4 & 3) - 2;
        last->g += (tag >> 2 & 3) - 2;
        last->b += (tag & 3) - 2;
    } else if (tag >> 6 == 2) {
        length = 2;
        if (left < length) return false;
        const int green = (tag & 63) - 32;
        last->r += green - 8 + (at[1] >> 4);
        last->g += green;
        last->b += green - 8 + (at[1] & 15);
    } else {
        qoi->run = tag & 63;
    }
    qoi->at += length;
    qoi->seen[(last->r * 3 + last->g * 5 + last->b * 7 + last->a * 11) % 64] = *last;
    return true;
}

tern_codec_result tern_qoi_rows(tern_qoi *qoi, tern_canvas canvas, uint32_t rows, char *error) {
    if (!tern_canvas_fits(canvas, qoi->width, qoi->height, error)) return TERN_CODEC_CORRUPT;
    for (uint32_t done = 0; done < rows && qoi->row < qoi->height; done++, qoi->row++) {
        uint8_t *row = canvas.pixels + canvas.stride * qoi->row;
        for (uint32_t x = 0; x < qoi->width; x++) {
            if (qoi->run > 0) {
                qoi->run--;
            } else if (!readChunk(qoi)) {
                snprintf(error, 160, "the bytes end within the pixels");
                return TERN_CODEC_TRUNCATED;
            }
            const uint8_t alpha = qoi->hasAlpha ? qoi->last.a : 255;
            memcpy(row + (size_t)x * 4, (uint8_t[]){qoi->last.r, qoi->last.g, qoi->last.b, alpha}, 4);
        }
    }
    return qoi->row < qoi->height ? TERN_CODEC_MORE : TERN_CODEC_OK;
}

bool tern_qoi_has_end(const tern_qoi *qoi) {
    return qoi->row == qoi->height && isMarker(qoi->bytes, qoi->at, qoi->count);
}

void tern_qoi_close(tern_qoi *qoi) { free(qoi); }
