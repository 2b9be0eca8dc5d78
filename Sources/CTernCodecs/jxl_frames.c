#include "jxl_frames.h"

#if defined(__linux__)
#include <stdio.h>

typedef struct {
    const uint8_t *bytes;
    uint64_t bitCount, at;
} bits;

/// The bits beyond the end are 0. `isOut` tells.
static uint32_t take(bits *bits, unsigned count) {
    uint32_t value = 0;
    for (unsigned i = 0; i < count; i++, bits->at++)
        if (bits->at < bits->bitCount) value |= (uint32_t)(bits->bytes[bits->at / 8] >> bits->at % 8 & 1) << i;
    return value;
}

static bool isOut(const bits *bits) { return bits->at > bits->bitCount; }

static void skip(bits *bits, uint64_t count) {
    // Stays far from an overflow.
    bits->at += count < UINT32_MAX ? count : UINT32_MAX;
}

/// Reads a number in one of four ways: its bits and the value of none of them.
typedef struct { uint8_t bits; uint32_t least; } way;
static uint32_t number(bits *bits, const way ways[4]) {
    const way *way = &ways[take(bits, 2)];
    return way->least + take(bits, way->bits);
}

static uint64_t longNumber(bits *bits) {
    switch (take(bits, 2)) {
    case 0: return 0;
    case 1: return 1 + take(bits, 4);
    case 2: return 17 + take(bits, 8);
    default: break;
    }
    uint64_t value = take(bits, 12);
    for (unsigned shift = 12; take(bits, 1); shift += 8) {
        if (shift == 60) return value | (uint64_t)take(bits, 4) << shift;
        value |= (uint64_t)take(bits, 8) << shift;
    }
    return value;
}

static const way oneToEight[4] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}};
static const way sides[4] = {{8, 0}, {11, 256}, {14, 2304}, {30, 18688}};

enum { REGULAR, LOW_FREQUENCY, REFERENCE, SKIPPED };
enum { USES_LOW_FREQUENCY_FRAME = 32 };

typedef struct {
    uint32_t type;
    bool isModular, isLast, isShown, isBlended;
    uint64_t width, height, groups, lowGroups;
    uint32_t upsampling, passes, duration;
    /// The place that the frame is kept in for later ones, 0 to 3; −1 for none.
    int kept;
} frame;

static void skipExtensions(bits *bits) {
    uint64_t total = 0;
    for (uint64_t left = longNumber(bits); left && !isOut(bits); left &= left - 1) {
        const uint64_t length = longNumber(bits);
        total = total > UINT64_MAX - length ? UINT64_MAX : total + length;
    }
    skip(bits, total);
}

static void skipLoopFilter(bits *bits, bool isModular) {
    if (take(bits, 1)) return;
    if (take(bits, 1) && take(bits, 1)) skip(bits, 6 * 16);
    if (take(bits, 2)) {
        if (!isModular && take(bits, 1)) skip(bits, 8 * 16);
        if (take(bits, 1)) skip(bits, 5 * 16);
        if (take(bits, 1)) skip(bits, (isModular ? 3 : 4) * 16);
        if (isModular) skip(bits, 16);
    }
    skipExtensions(bits);
}

static void skipPasses(bits *bits, frame *frame) {
    static const way counts[4] = {{0, 1}, {0, 2}, {0, 3}, {3, 4}}, steps[4] = {{0, 0}, {0, 1}, {0, 2}, {1, 3}},
                     last[4] = {{0, 0}, {0, 1}, {0, 2}, {3, 0}};
    frame->passes = number(bits, counts);
    if (frame->passes == 1) return;
    const uint32_t downsampled = number(bits, steps);
    skip(bits, 2 * (frame->passes - 1) + 2 * downsampled);
    for (uint32_t i = 0; i < downsampled; i++) number(bits, last);
}

/// Reads how a frame is drawn on the one before. Returns whether it replaces it.
static bool replaces(bits *bits, uint32_t extraChannels, bool isPart) {
    static const way modes[4] = {{0, 0}, {0, 1}, {0, 2}, {2, 3}}, channels[4] = {{0, 0}, {0, 1}, {0, 2}, {3, 3}};
    const uint32_t mode = number(bits, modes);
    const bool usesAlpha = extraChannels > 0 && (mode == 2 || mode == 3);
    if (usesAlpha) number(bits, channels);
    if (usesAlpha || mode == 4) skip(bits, 1);
    if (mode != 0 || isPart) skip(bits, 2);
    return mode == 0;
}

static int64_t sign(uint32_t value) { return value & 1 ? -(int64_t)(value >> 1) - 1 : (int64_t)(value >> 1); }

/// Reads the header of a frame (ISO/IEC 18181-1, C.2).
static frame readFrame(bits *bits, const tern_jxl_head *head, uint32_t width, uint32_t height) {
    static const way durations[4] = {{0, 0}, {0, 1}, {8, 0}, {32, 0}}, levels[4] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}},
                     names[4] = {{0, 0}, {4, 0}, {5, 16}, {10, 48}};
    frame frame = {.width = width, .height = height, .upsampling = 1, .passes = 1, .kept = -1};
    uint32_t groupShift = 1, across = 0, down = 0, level = 0;
    if (take(bits, 1)) {
        frame.isLast = true;
    } else {
        frame.type = take(bits, 2);
        frame.isModular = take(bits, 1);
        const uint64_t flags = longNumber(bits);
        const bool isYCC = !head->isXYB && take(bits, 1);
        if (!(flags & USES_LOW_FREQUENCY_FRAME)) {
            // Chroma of a half or the whole width and height.
            if (isYCC) {
                for (int i = 0; i < 3; i++) {
                    const uint32_t mode = take(bits, 2);
                    across |= mode == 1 || mode == 2;
                    down |= mode == 1 || mode == 3;
                }
            }
            frame.upsampling = number(bits, oneToEight);
            for (uint32_t i = 0; i < head->extraChannels && !isOut(bits); i++) number(bits, oneToEight);
        }
        if (frame.isModular) groupShift = take(bits, 2);
        if (!frame.isModular && head->isXYB) skip(bits, 6);
        if (frame.type != REFERENCE) skipPasses(bits, &frame);
        if (frame.type == LOW_FREQUENCY) level = number(bits, levels);
        bool isPart = false;
        const bool isDrawn = frame.type == REGULAR || frame.type == SKIPPED;
        if (frame.type != LOW_FREQUENCY && take(bits, 1)) {
            const int64_t left = isDrawn ? sign(number(bits, sides)) : 0, top = isDrawn ? sign(number(bits, sides)) : 0;
            frame.width = number(bits, sides);
            frame.height = number(bits, sides);
            isPart = isDrawn && (left > 0 || top > 0 || (int64_t)frame.width + left < width
                || (int64_t)frame.height + top < height);
        }
        bool isReplacing = true;
        if (isDrawn) {
            isReplacing = replaces(bits, head->extraChannels, isPart);
            for (uint32_t i = 0; i < head->extraChannels && !isOut(bits); i++)
                frame.isBlended |= !replaces(bits, head->extraChannels, isPart);
            frame.isBlended |= !isReplacing || isPart;
            if (head->isAnimation) frame.duration = number(bits, durations);
            if (head->hasTimecodes) skip(bits, 32);
            frame.isLast = take(bits, 1);
        }
        if (frame.type != LOW_FREQUENCY && !frame.isLast) {
            const int place = (int)take(bits, 2);
            const bool isKept = frame.duration == 0 || place != 0;
            if (isKept) frame.kept = place;
            if (frame.type == REFERENCE || (isKept && isReplacing && !isPart)) skip(bits, 1);
        }
        const uint32_t name = number(bits, names);
        skip(bits, (uint64_t)name * 8);
        skipLoopFilter(bits, frame.isModular);
        skipExtensions(bits);
    }
    frame.isShown = frame.isLast || frame.duration > 0;
    frame.width = (frame.width + (1u << 3 * level) - 1) >> 3 * level;
    frame.height = (frame.height + (1u << 3 * level) - 1) >> 3 * level;
    const uint64_t codedWidth = (frame.width + frame.upsampling - 1) / frame.upsampling,
                   codedHeight = (frame.height + frame.upsampling - 1) / frame.upsampling, group = 128u << groupShift;
    const uint64_t columns = ((codedWidth + (8u << across) - 1) / (8u << across)) << across,
                   rows = ((codedHeight + (8u << down) - 1) / (8u << down)) << down;
    frame.groups = ((codedWidth + group - 1) / group) * ((codedHeight + group - 1) / group);
    frame.lowGroups = ((columns + group - 1) / group) * ((rows + group - 1) / group);
    return frame;
}

/// Reads the table of contents (C.3). Returns the bytes that follow it, or UINT64_MAX if their order is changed, which
/// the numbers depend on.
static uint64_t readContents(bits *bits, const frame *frame) {
    static const way sizes[4] = {{10, 0}, {14, 1024}, {22, 17408}, {30, 4211712}};
    const uint64_t entries = frame->groups == 1 && frame->passes == 1
        ? 1 : 2 + frame->lowGroups + frame->groups * frame->passes;
    if (take(bits, 1)) return UINT64_MAX;
    bits->at = (bits->at + 7) / 8 * 8;
    uint64_t total = 0;
    for (uint64_t i = 0; i < entries && !isOut(bits); i++) total += number(bits, sizes);
    bits->at = (bits->at + 7) / 8 * 8;
    return total;
}

/// Returns the bytes of a frame's samples, as they are kept for later frames.
static uint64_t sampleMemory(const frame *frame, const tern_jxl_head *head) {
    // Rows and columns are padded.
    return (frame->width + 64) * (frame->height + 8) * 4 * (3 + (uint64_t)head->extraChannels);
}

/// Returns the most bytes that libjxl takes to decode a frame, as measured with 0.7, 0.10 and 0.11. The header does not
/// tell whether a modular frame is decoded as a whole, so that it often takes less.
static uint64_t workMemory(const frame *frame, const tern_jxl_head *head) {
    if (frame->isModular || head->extraChannels > 0) return sampleMemory(frame, head) * 3;
    // The coefficients of several passes are kept until the last one.
    return (frame->width + 64) * (frame->height + 64) * (frame->passes > 1 ? 16 : 8);
}

tern_codec_result tern_jxl_walk(
    const uint8_t *bytes, size_t count, size_t start, const tern_jxl_head *head, tern_jxl_frames *frames, char *error) {
    *frames = (tern_jxl_frames){0};
    const uint64_t canvas = (uint64_t)head->width * head->height, pixelLimit = head->limits.pixels;
    const frame canvasFrame = {.width = head->width, .height = head->height};
    const uint64_t picture = sampleMemory(&canvasFrame, head);
    uint64_t kept[4] = {0}, largest = 0, hidden = 0;
    bits bits = {.bytes = bytes, .bitCount = (uint64_t)count * 8, .at = (uint64_t)start * 8};
    bool isPreview = head->previewWidth > 0;
    for (uint32_t index = 0;; index++) {
        const frame frame = readFrame(
            &bits, head, isPreview ? head->previewWidth : head->width, isPreview ? head->previewHeight : head->height);
        if (isOut(&bits)) {
            snprintf(error, 160, "the bytes end in the header of frame %u", (unsigned)index);
            frames->isCut = true;
            break;
        }
        if (frame.width == 0 || frame.height == 0 || (frame.type == SKIPPED && frame.isLast)) {
            snprintf(error, 160, "the header of frame %u is damaged", (unsigned)index);
            return TERN_CODEC_CORRUPT;
        }
        if (frame.width > pixelLimit || frame.height > pixelLimit || frame.width * frame.height > pixelLimit) {
            snprintf(
                error, 160, "frame %u has %llu × %llu pixels, the limit is %llu in all", (unsigned)index,
                (unsigned long long)frame.width, (unsigned long long)frame.height, (unsigned long long)pixelLimit);
            return TERN_CODEC_LIMIT;
        }
        if (!isPreview) {
            const uint64_t pixels = frame.width * frame.height, samples = sampleMemory(&frame, head);
            // A frame that is drawn on another has the size of the picture afterwards.
            const uint64_t whole = frame.isBlended && samples < picture ? picture : samples;
            const uint64_t work = workMemory(&frame, head) + (frame.isBlended || frame.kept >= 0 ? whole : 0);
            if (work > largest) largest = work;
            if (frame.kept >= 0 && whole > kept[frame.kept]) kept[frame.kept] = whole;
            frames->pixels += pixels;
            frames->shown += frame.isShown;
            hidden = frame.isShown ? 0 : hidden + pixels;
            if (hidden / (head->limits.scans > 0 ? (unsigned)head->limits.scans : 1) > canvas + (1 << 16)) {
                snprintf(error, 160, "layers of more than %d times the picture", head->limits.scans);
                return TERN_CODEC_SCANS;
            }
            if (index >= head->limits.frames) {
                snprintf(error, 160, "more than %u frames", (unsigned)head->limits.frames);
                return TERN_CODEC_SCANS;
            }
        }
        const uint64_t length = readContents(&bits, &frame);
        const bool isEnd = frame.isLast && !isPreview;
        isPreview = false;
        if (length == UINT64_MAX) {
            // The end of the last frame is left to libjxl.
            if (isEnd) break;
            snprintf(error, 160, "frame %u has its parts in another order, and is not the last", (unsigned)index);
            return TERN_CODEC_UNSUPPORTED;
        }
        if (isOut(&bits) || length > (bits.bitCount - bits.at) / 8) {
            frames->isCut = true;
            break;
        }
        bits.at += length * 8;
        if (isEnd) break;
    }
    frames->memory = largest + kept[0] + kept[1] + kept[2] + kept[3];
    return frames->shown > 0 ? TERN_CODEC_OK : TERN_CODEC_TRUNCATED;
}
#endif
