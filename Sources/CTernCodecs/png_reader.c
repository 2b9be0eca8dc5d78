// Reads rows from data that are decompressed in one piece. This is the way of files that are sound from their first
// chunk with picture data to their end, and not interlaced. libpng reads the rows of all others, and of a picture whose
// data take too much memory: it alone decides which damage is tolerated, what is left of a picture, and what the error
// says. Both make the same pixels, which the fuzz target `png-pixels` compares.
//
// libdeflate accepts the reserved codes (RFC 1951, §3.2.5), where zlib refuses the stream. With them, a
// file counts as sound if its checksums are correct, those of its contents too. No encoder writes them.
#include "png_reader.h"

#if defined(__linux__)
#include "CTernCodecs.h"
#include "deflate.h"
#include "png_chunks.h"
#include "png_filter.h"

#include <stdlib.h>
#include <string.h>

struct tern_png_reader {
    tern_png_samples samples;
    // The rows that follow, each behind its filter.
    const uint8_t *next;
    uint32_t left;
    size_t rowBytes;
    unsigned step;
    // The row above, and two rows, of which the second is kept until it is asked for.
    uint8_t *above, *row, *second;
    bool hasSecond;
    // The memory of the data, unless they are in the room of a canvas, and that of the rows.
    uint8_t *data, *lines;
};

/// The chunks with picture data, which follow each other: the position of the first one's data, their size, and the
/// number of chunks.
typedef struct {
    size_t from, size, chunks;
} stream;

/// Returns whether libpng would accept all chunks from the first IDAT on, and IEND ends the file. The checksums of IDAT are
/// not checked here.
static bool survey(const uint8_t *bytes, size_t count, size_t at, stream *found) {
    *found = (stream){.from = at + 8};
    for (bool isData = true; at < count && count - at >= 12;) {
        const size_t length = tern_png_number(bytes + at);
        const uint32_t type = tern_png_number(bytes + at + 4);
        if (type == TERN_PNG_IEND) return length == 0 && tern_png_number(bytes + at + 8) == 0xAE426082;
        if (length > count - at - 12 || length > INT32_MAX) return false;
        isData = isData && type == TERN_PNG_IDAT;
        if (!isData && tern_png_is_decoded(type)) return false;
        if (isData) {
            found->size += length;
            found->chunks++;
        }
        at += 12 + length;
    }
    return false;
}

/// Returns the size of the picture's data, or 0 if the stream is too short to contain that many.
static uint64_t dataSize(const tern_png_samples *samples, const stream *found) {
    const uint64_t row = tern_png_row_bytes(samples) + 1;
    // deflate makes at most 1032 bytes of one.
    return row > found->size * 1032 / samples->height + 1 ? 0 : row * samples->height;
}

/// Returns the memory of three rows.
static uint64_t linesSize(const tern_png_samples *samples) {
    return (tern_png_row_bytes(samples) + TERN_PNG_SLACK) * 3;
}

uint64_t tern_png_room(uint32_t width, uint32_t height) {
    // The data lie at the end of the room, so that each row is read before its pixels are written.
    return (uint64_t)width * height * 4 + height + 64;
}

static bool isInRoom(const tern_png_samples *samples, uint64_t size, size_t room) {
    // In a row of more than 8 bits a sample, there can be more data than pixels.
    return samples->depth <= 8 && room >= tern_png_room(samples->width, samples->height)
        && size + TERN_PNG_SLACK <= room;
}

uint64_t tern_png_reader_memory(
    const uint8_t *bytes, size_t count, size_t from, const tern_png_samples *samples, size_t room) {
    stream found;
    if (samples->isInterlaced || !survey(bytes, count, from, &found)) return UINT64_MAX;
    const uint64_t size = dataSize(samples, &found);
    if (size == 0) return UINT64_MAX;
    const uint64_t joined = found.chunks > 1 ? found.size : 0;
    return joined + (isInRoom(samples, size, room) ? 0 : size + TERN_PNG_SLACK) + linesSize(samples);
}

/// Returns the picture's stream in one piece, with correct checksums, or NULL. Sets `joined` to memory to free.
static const uint8_t *gather(const uint8_t *bytes, const stream *found, uint8_t **joined) {
    if (found->chunks > 1) {
        *joined = malloc(found->size);
        if (!*joined) return NULL;
        tern_prefer_large_pages(*joined, found->size);
    }
    const uint8_t *at = bytes + found->from;
    for (size_t i = 0, done = 0; i < found->chunks; i++) {
        const size_t length = tern_png_number(at - 8);
        if (tern_crc32(0, at - 4, length + 4) != tern_png_number(at + length)) return NULL;
        if (*joined) memcpy(*joined + done, at, length);
        done += length;
        at += 12 + length;
    }
    return *joined ? *joined : bytes + found->from;
}

static bool hasKnownFilters(const tern_png_reader *rows) {
    for (uint32_t y = 0; y < rows->left; y++)
        if (rows->next[(rows->rowBytes + 1) * y] > TERN_PNG_PAETH) return false;
    return true;
}

tern_png_reader *tern_png_reader_open(
    const uint8_t *bytes, size_t count, size_t from, const tern_png_samples *samples, uint8_t *place, size_t room) {
    stream found;
    if (samples->isInterlaced || !survey(bytes, count, from, &found)) return NULL;
    const uint64_t size = dataSize(samples, &found);
    if (size == 0 || size > SIZE_MAX / 4 || linesSize(samples) > SIZE_MAX / 4) return NULL;
    tern_png_reader *rows = calloc(1, sizeof *rows);
    if (!rows) return NULL;
    rows->samples = *samples;
    tern_png_prepare(&rows->samples);
    rows->left = samples->height;
    rows->rowBytes = (size_t)tern_png_row_bytes(samples);
    rows->step = (tern_png_sample_channels(samples) * samples->depth + 7) / 8;
    uint8_t *joined = NULL, *data = NULL;
    const uint8_t *stream = gather(bytes, &found, &joined);
    if (isInRoom(samples, size, room)) {
        data = place + room - TERN_PNG_SLACK - size;
    } else if (stream) {
        data = rows->data = malloc((size_t)size + TERN_PNG_SLACK);
        if (data) tern_prefer_large_pages(data, (size_t)size);
    }
    bool isSound = stream && data && tern_inflate(stream, found.size, data, (size_t)size);
    free(joined);
    rows->next = data;
    isSound = isSound && hasKnownFilters(rows) && (rows->lines = calloc(1, (size_t)linesSize(samples)));
    if (!isSound) {
        tern_png_reader_close(rows);
        return NULL;
    }
    rows->above = rows->lines;
    rows->row = rows->above + rows->rowBytes + TERN_PNG_SLACK;
    rows->second = rows->row + rows->rowBytes + TERN_PNG_SLACK;
    return rows;
}

/// Returns the next row without its filter, and makes it the row above.
static const uint8_t *unfiltered(tern_png_reader *rows) {
    uint8_t *row = rows->hasSecond ? rows->second : rows->row, *above = rows->above;
    if (!rows->hasSecond) {
        const size_t count = rows->rowBytes;
        const uint8_t *from = rows->next + 1, *second = from + count + 1;
        rows->hasSecond = rows->left > 1 && (rows->step == 3 || rows->step == 4) && from[-1] == TERN_PNG_PAETH
            && second[-1] == TERN_PNG_PAETH;
        if (rows->hasSecond) {
            tern_png_unfilter_two(from, second, above, row, rows->second, count, rows->step);
            rows->next = second + count;
            rows->left--;
            return row;
        }
        tern_png_unfilter(from[-1], from, above, row, count, rows->step);
        rows->next = from + count;
        rows->row = above;
    } else {
        rows->second = above;
        rows->hasSecond = false;
    }
    rows->left--;
    return rows->above = row;
}

void tern_png_reader_next(tern_png_reader *rows, uint8_t *pixels) {
    if (rows->left > 0) tern_png_convert(&rows->samples, unfiltered(rows), pixels);
}

void tern_png_reader_close(tern_png_reader *rows) {
    if (!rows) return;
    free(rows->data);
    free(rows->lines);
    free(rows);
}
#endif
