// Decodes animated PNG files (W3C PNG, third edition, §11.3.2) with a libpng that does not support animations. libpng
// gets each frame as a still file of the frame's size.
#include "deflate.h"
#include "incremental.h"
#include "memory.h"
#include "png_chunks.h"

#if defined(__linux__)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP = 0, CLEAR = 1, RESTORE = 2 };
// The number of bytes of the shortest zlib stream.
enum { SHORTEST_DATA = 8 };

typedef struct {
    uint32_t width, height, left, top;
    unsigned dispose, blend;
    uint64_t microseconds;
} control;

typedef struct {
    // The position and the length of the chunk's data, and the position of the next chunk. `whole` is false if the
    // bytes end within the chunk.
    size_t at, length, next;
    char name[5];
    bool whole;
} chunk;

struct tern_apng {
    const uint8_t *bytes;
    size_t count, at;
    uint32_t width, height;
    chunk header, palette, transparency;
    bool seesDefault;
    control frame;
    // The current frame as a file of its own, with its decoder, and its pixels in memory for the largest frame.
    uint8_t *file;
    size_t fileCount, fileCapacity;
    tern_png *png;
    uint8_t *part, *canvas, *saved;
};

static uint32_t be32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static tern_codec_result corrupt(char *error, const char *what) {
    snprintf(error, 160, "%s", what);
    return TERN_CODEC_CORRUPT;
}

static bool named(const chunk *chunk, const char *name) { return !memcmp(chunk->name, name, 4); }

/// Reads the head of the chunk at a position. Returns false if the bytes end within the head.
static bool readChunk(const uint8_t *bytes, size_t count, size_t at, chunk *found) {
    if (at > count || count - at < 8) return false;
    found->at = at + 8;
    found->length = be32(bytes + at);
    memcpy(found->name, bytes + at + 4, 4);
    found->name[4] = 0;
    found->whole = count - found->at >= 4 && found->length <= count - found->at - 4;
    found->next = found->whole ? found->at + found->length + 4 : count;
    return true;
}

/// Returns whether the checksum at the end of a whole chunk matches the chunk's name and data.
static bool sound(const uint8_t *bytes, const chunk *chunk) {
    return tern_crc32(0, bytes + chunk->at - 4, chunk->length + 4) == be32(bytes + chunk->at + chunk->length);
}

int tern_png_animation(const uint8_t *bytes, size_t count) {
    chunk each;
    bool animated = false, controlled = false;
    for (size_t at = 8; readChunk(bytes, count, at, &each) && !named(&each, "IDAT"); at = each.next) {
        animated = animated || (named(&each, "acTL") && each.whole);
        controlled = controlled || named(&each, "fcTL");
    }
    return !animated ? 0 : controlled ? 1 : 2;
}

/// Reads a frame control chunk. Leaves `into` unchanged unless the frame lies within the picture.
static tern_codec_result readControl(const tern_apng *apng, const chunk *chunk, control *into, char *error) {
    if (chunk->length < 26 || !sound(apng->bytes, chunk)) return corrupt(error, "a damaged frame control");
    const uint8_t *at = apng->bytes + chunk->at;
    uint32_t numerator = (uint32_t)at[20] << 8 | at[21], denominator = (uint32_t)at[22] << 8 | at[23];
    control read = {.width = be32(at + 4), .height = be32(at + 8), .left = be32(at + 12), .top = be32(at + 16),
                    .dispose = at[24], .blend = at[25],
                    .microseconds = (uint64_t)numerator * 1000000 / (denominator ? denominator : 100)};
    if (read.width == 0 || read.height == 0 || read.left > apng->width || read.top > apng->height
        || read.width > apng->width - read.left || read.height > apng->height - read.top)
        return corrupt(error, "a frame outside the picture");
    if (read.dispose > RESTORE || read.blend > 1) return corrupt(error, "an unknown way to draw a frame");
    *into = read;
    return TERN_CODEC_OK;
}

/// Walks over the chunks once. Counts the frames, checks the order of the chunks, and finds the chunks that begin every
/// frame's file.
static tern_codec_result walk(tern_apng *apng, uint32_t limit, tern_codec_info *info, char *error) {
    chunk each;
    control frame;
    uint32_t sequence = 0, promised = 0;
    bool waiting = false, data = false, ended = false;
    // The data of the last frame.
    tern_png_data last = {0};
    const bool hasEnd = tern_png_has_end(apng->bytes, apng->count);
    // The number of bytes of the current frame's data.
    size_t at = 8, there = SHORTEST_DATA;
    for (; !ended && info->frameCount <= limit && readChunk(apng->bytes, apng->count, at, &each); at = each.next) {
        const uint8_t *bytes = apng->bytes + each.at;
        bool isFrameData = named(&each, "fdAT"), isData = named(&each, "IDAT");
        // A file that has its end chunk is not cut short.
        if (data && !isData && !each.whole && hasEnd) return corrupt(error, "a chunk that is longer than the file");
        if ((named(&each, "fcTL") || named(&each, "IEND")) && there < SHORTEST_DATA)
            return corrupt(error, "a frame without data");
        if (isData) {
            if (data && (waiting || info->frameCount > (apng->seesDefault ? 1 : 0)))
                return corrupt(error, "the still picture's data among the frames");
            if (waiting) info->frameCount = 1;
            data = true;
            waiting = false;
            continue;
        }
        if (!each.whole && !isFrameData) break;
        if (named(&each, "acTL") && !data && each.length == 8 && sound(apng->bytes, &each)) {
            promised = be32(bytes);
            info->loopCount = be32(bytes + 4);
        } else if (named(&each, "fcTL") || isFrameData) {
            if (each.length < 4) return corrupt(error, "an animation chunk without a number");
            if (!each.whole && apng->count - each.at < 4) break;
            if (each.whole && !sound(apng->bytes, &each)) return corrupt(error, "a wrong checksum");
            if (be32(bytes) != sequence++) return corrupt(error, "frames out of sequence");
            if (isFrameData) {
                if (!data || (info->frameCount == 0 && !waiting)) return corrupt(error, "frame data without a frame");
                if (waiting) info->frameCount++;
                there = (waiting ? 0 : there) + each.length - 4;
                waiting = false;
                continue;
            }
            if (waiting) return corrupt(error, "a frame without data");
            waiting = true;
            tern_codec_result result = readControl(apng, &each, &frame, error);
            if (result != TERN_CODEC_OK) return result;
            last = (tern_png_data){at, data ? TERN_PNG_fdAT : TERN_PNG_IDAT, frame.width, frame.height};
            if (!data) {
                apng->seesDefault = true;
                if (frame.width != apng->width || frame.height != apng->height)
                    return corrupt(error, "a first frame of another size");
            }
        } else if (named(&each, "PLTE") || named(&each, "tRNS")) {
            // It is copied into the file of each frame.
            if (each.length > (named(&each, "PLTE") ? 768 : 256)) return corrupt(error, "a palette that is too long");
            *(named(&each, "PLTE") ? &apng->palette : &apng->transparency) = each;
            if (!sound(apng->bytes, &each)) return corrupt(error, "a wrong checksum");
        } else if (named(&each, "iCCP")) info->hasProfile = true;
        else ended = named(&each, "IEND");
    }
    info->isAnimation = true;
    if (info->frameCount > limit) return TERN_CODEC_OK;
    // If only the end is missing, the stated frames are there, with all data of the last one.
    info->isCut = !ended
        && (waiting || info->frameCount != promised || !tern_png_has_stream(apng->bytes, apng->count, last));
    if ((ended && (waiting || info->frameCount != promised)) || info->frameCount > promised) {
        snprintf(error, 160, "%u frames where %u were promised", info->frameCount, promised);
        return TERN_CODEC_CORRUPT;
    }
    if (info->frameCount > 0) return TERN_CODEC_OK;
    snprintf(error, 160, "the bytes end before the first frame");
    return ended ? TERN_CODEC_CORRUPT : TERN_CODEC_TRUNCATED;
}

tern_apng *tern_apng_open(
    const uint8_t *bytes, size_t count, uint32_t frameLimit, tern_codec_info *info, int *result, char *error) {
    tern_apng *apng = calloc(1, sizeof *apng);
    *result = TERN_CODEC_MEMORY;
    if (!apng) return NULL;
    apng->bytes = bytes;
    apng->count = count;
    if (!readChunk(bytes, count, 8, &apng->header) || !apng->header.whole) {
        snprintf(error, 160, "the bytes end within the header");
        *result = TERN_CODEC_TRUNCATED;
    } else if (!named(&apng->header, "IHDR") || apng->header.length != 13 || !sound(bytes, &apng->header)) {
        *result = corrupt(error, "no header");
    } else {
        apng->width = be32(bytes + apng->header.at);
        apng->height = be32(bytes + apng->header.at + 4);
        // The memory of the canvas, of its copy from before a frame, and of the frame as a file and as pixels, and of its
        // data in one piece.
        *info = (tern_codec_info){.width = apng->width, .height = apng->height,
                                  .orientation = tern_png_find_exif(bytes, count).orientation, .hasAlpha = true,
                                  .memory = (uint64_t)apng->width * apng->height * 12 + apng->height + count * 3
                                      + tern_png_memory(apng->width, 16, 4) * 2};
        *result = walk(apng, frameLimit, info, error);
    }
    if (*result == TERN_CODEC_OK) {
        tern_apng_rewind(apng);
        return apng;
    }
    tern_apng_close(apng);
    return NULL;
}

bool tern_apng_is_cut(const uint8_t *bytes, size_t count) {
    tern_codec_info info = {0};
    char ignored[160];
    int result = TERN_CODEC_OK;
    tern_apng *apng = tern_apng_open(bytes, count, UINT32_MAX, &info, &result, ignored);
    bool isCut = !apng || info.isCut;
    tern_apng_close(apng);
    return isCut;
}

static bool reserve(tern_apng *apng, size_t length) {
    size_t needed = apng->fileCount + length;
    if (needed <= apng->fileCapacity) return true;
    uint8_t *larger = realloc(apng->file, needed * 2);
    if (!larger) return false;
    apng->file = larger;
    apng->fileCapacity = needed * 2;
    return true;
}

/// Appends a chunk with a checksum to the frame's file. Leaves the checksum out if fewer bytes of data are present than
/// the chunk declares.
static bool append(tern_apng *apng, const char *name, const uint8_t *data, size_t length, size_t declared) {
    if (!reserve(apng, length + 12)) return false;
    uint8_t *at = apng->file + apng->fileCount;
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(declared >> (24 - 8 * i));
    memcpy(at + 4, name, 4);
    if (length > 0) memcpy(at + 8, data, length);
    apng->fileCount += 8 + length;
    if (length < declared) return true;
    const uint32_t sum = tern_crc32(0, at + 4, length + 4);
    for (int i = 0; i < 4; i++) at[8 + length + i] = (uint8_t)(sum >> (24 - 8 * i));
    apng->fileCount += 4;
    return true;
}

/// Appends the signature and the chunks that come before the data.
static bool appendHead(tern_apng *apng) {
    uint8_t header[13];
    memcpy(header, apng->bytes + apng->header.at, 13);
    for (int i = 0; i < 4; i++) {
        header[i] = (uint8_t)(apng->frame.width >> (24 - 8 * i));
        header[4 + i] = (uint8_t)(apng->frame.height >> (24 - 8 * i));
    }
    if (!reserve(apng, 8)) return false;
    memcpy(apng->file, apng->bytes, 8);
    apng->fileCount = 8;
    if (!append(apng, "IHDR", header, 13, 13)) return false;
    const chunk *common[] = {&apng->palette, &apng->transparency};
    for (int i = 0; i < 2; i++) {
        const chunk *from = common[i];
        if (from->length > 0 && !append(apng, from->name, apng->bytes + from->at, from->length, from->length))
            return false;
    }
    return true;
}

/// Builds the next frame's file from the chunks up to the next frame control chunk.
static tern_codec_result build(tern_apng *apng, char *error) {
    chunk each;
    apng->fileCount = 0;
    bool controlled = false, data = false, cut = false;
    while (!cut && readChunk(apng->bytes, apng->count, apng->at, &each)) {
        bool isFrameData = named(&each, "fdAT"), isData = named(&each, "IDAT") && apng->seesDefault;
        if (named(&each, "IEND") || (named(&each, "fcTL") && controlled)) break;
        apng->at = each.next;
        cut = !each.whole;
        if (named(&each, "fcTL") && each.whole) {
            tern_codec_result result = readControl(apng, &each, &apng->frame, error);
            if (result != TERN_CODEC_OK) return result;
            controlled = true;
            if (!appendHead(apng)) return TERN_CODEC_MEMORY;
        } else if (controlled && (isFrameData || isData)) {
            size_t skipped = isFrameData ? 4 : 0, there = each.whole ? each.length : apng->count - each.at;
            if (each.length < skipped || there < skipped) break;
            if (each.whole && !sound(apng->bytes, &each)) return corrupt(error, "a wrong checksum");
            const uint8_t *from = apng->bytes + each.at + skipped;
            if (there > each.length) there = each.length;
            // A chunk that is cut within its checksum is not whole either.
            size_t declared = each.length - skipped + (each.whole ? 0 : 1);
            if (!append(apng, "IDAT", from, there - skipped, declared)) return TERN_CODEC_MEMORY;
            data = true;
        }
    }
    if (!controlled || !data) {
        snprintf(error, 160, "the bytes end before the frame's data");
        return TERN_CODEC_TRUNCATED;
    }
    return cut || append(apng, "IEND", NULL, 0, 0) ? TERN_CODEC_OK : TERN_CODEC_MEMORY;
}

/// Copies the frame's rectangle, or clears it.
static void rectangle(const tern_apng *apng, uint8_t *target, const uint8_t *source) {
    const control *frame = &apng->frame;
    for (uint32_t y = 0; y < frame->height; y++) {
        size_t at = ((size_t)(frame->top + y) * apng->width + frame->left) * 4, length = (size_t)frame->width * 4;
        if (source) memcpy(target + at, source + at, length);
        else memset(target + at, 0, length);
    }
}

static tern_codec_result begin(tern_apng *apng, char *error) {
    size_t size = (size_t)apng->width * apng->height * 4;
    if (!apng->canvas) apng->canvas = calloc(1, size);
    if (!apng->canvas) return TERN_CODEC_MEMORY;
    if (apng->frame.dispose == CLEAR) rectangle(apng, apng->canvas, NULL);
    if (apng->frame.dispose == RESTORE && apng->saved) rectangle(apng, apng->canvas, apng->saved);
    apng->frame.dispose = KEEP;
    tern_codec_result result = build(apng, error);
    if (result != TERN_CODEC_OK) return result;
    if (apng->frame.dispose == RESTORE) {
        if (!apng->saved) apng->saved = malloc(size);
        if (!apng->saved) return TERN_CODEC_MEMORY;
        rectangle(apng, apng->saved, apng->canvas);
    }
    if (!apng->part) apng->part = malloc(tern_png_room(apng->width, apng->height));
    if (!apng->part) return TERN_CODEC_MEMORY;
    tern_codec_info info;
    int opened = TERN_CODEC_OK;
    apng->png = tern_png_open(apng->file, apng->fileCount, tern_no_limits, &info, &opened, error);
    if (!apng->png) return (tern_codec_result)opened;
    // The pixels of a frame that libpng reads start as zeros, so that it draws nothing where its data are missing. libpng
    // reads samples of 16 bits, whose data would take more memory than the pixels.
    const size_t room = tern_png_room(apng->frame.width, apng->frame.height);
    if (apng->bytes[apng->header.at + 8] == 16) memset(apng->part, 0, room);
    else tern_png_inflate(apng->png, apng->part, room);
    return TERN_CODEC_OK;
}

static void draw(const tern_apng *apng, bool whole) {
    const control *frame = &apng->frame;
    for (uint32_t y = 0; y < frame->height; y++) {
        const uint8_t *from = apng->part + (size_t)y * frame->width * 4;
        uint8_t *to = apng->canvas + ((size_t)(frame->top + y) * apng->width + frame->left) * 4;
        if (frame->blend == 0 && whole) {
            memcpy(to, from, (size_t)frame->width * 4);
            continue;
        }
        for (uint32_t x = 0; x < frame->width; x++, from += 4, to += 4) {
            if (from[3] == 255) memcpy(to, from, 4);
            if (from[3] == 0 || from[3] == 255) continue;
            uint32_t above = from[3] * 255u, below = (255u - from[3]) * to[3], sum = above + below;
            for (int c = 0; c < 3; c++) to[c] = (uint8_t)((from[c] * above + to[c] * below + sum / 2) / sum);
            to[3] = (uint8_t)((sum + 127) / 255);
        }
    }
}

static void end(tern_apng *apng) {
    tern_png_close(apng->png);
    apng->png = NULL;
}

tern_codec_result tern_apng_next(
    tern_apng *apng, tern_canvas canvas, uint32_t rows, uint64_t *microseconds, char *error) {
    if (!tern_canvas_fits(canvas, apng->width, apng->height, error)) return TERN_CODEC_CORRUPT;
    tern_codec_result result = apng->png ? TERN_CODEC_OK : begin(apng, error);
    const control *frame = &apng->frame;
    tern_canvas part = {apng->part, (size_t)frame->width * 4, frame->width, frame->height};
    if (result == TERN_CODEC_OK) result = tern_png_rows(apng->png, part, rows, error);
    if (result == TERN_CODEC_MORE) return result;
    if (apng->png) draw(apng, result == TERN_CODEC_OK);
    *microseconds = apng->frame.microseconds;
    for (uint32_t y = 0; apng->canvas && y < apng->height; y++)
        memcpy(canvas.pixels + canvas.stride * y, apng->canvas + (size_t)y * apng->width * 4, (size_t)apng->width * 4);
    end(apng);
    return result;
}

void tern_apng_rewind(tern_apng *apng) {
    end(apng);
    apng->at = apng->header.next;
    apng->frame = (control){0};
    if (apng->canvas) memset(apng->canvas, 0, (size_t)apng->width * apng->height * 4);
}

void tern_apng_close(tern_apng *apng) {
    if (!apng) return;
    end(apng);
    free(apng->part);
    free(apng->file);
    free(apng->canvas);
    free(apng->saved);
    free(apng);
}
#endif
