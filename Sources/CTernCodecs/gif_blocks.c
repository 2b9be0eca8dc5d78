// Walks the blocks of a GIF (GIF 89a, §17 to §27). Every system uses this to judge whether a file is complete.
#include "CTernCodecs.h"
#include <string.h>

enum { TRAILER = 0x3B, EXTENSION = 0x21, IMAGE = 0x2C, CONTROL = 0xF9, APPLICATION = 0xFF };

/// Returns the index after the sub-blocks that begin at `at`; past the count if the bytes end within them.
static size_t blocksEnd(const uint8_t *bytes, size_t count, size_t at) {
    while (at < count && bytes[at] != 0) at += (size_t)bytes[at] + 1;
    return at < count ? at + 1 : count + 1;
}

/// Returns the size in bytes of the colour table that the flags announce.
static size_t colors(uint8_t flags) { return flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0; }

static uint32_t pair(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }

void tern_gif_grow(uint32_t *width, uint32_t *height, const uint8_t *descriptor) {
    uint32_t right = pair(descriptor) + pair(descriptor + 4), bottom = pair(descriptor + 2) + pair(descriptor + 6);
    if (right > *width) *width = right;
    if (bottom > *height) *height = bottom;
}

/// Returns whether an application's extension states the number of repetitions. Both names have the same content.
static bool isLoop(const uint8_t *content) {
    return !memcmp(content + 1, "NETSCAPE2.0", 11) || !memcmp(content + 1, "ANIMEXTS1.0", 11);
}

tern_gif_blocks tern_gif_walk(const uint8_t *bytes, size_t count, uint32_t frameLimit) {
    tern_gif_blocks found = {.loops = 1, .isCut = true};
    if (count < 13) return found;
    found.width = pair(bytes + 6);
    found.height = pair(bytes + 8);
    bool isAnimated = false;
    size_t at = 13 + colors(bytes[10]);
    while (at < count && found.frames <= frameLimit) {
        uint8_t block = bytes[at];
        if (block == EXTENSION) {
            const uint8_t *content = bytes + at + 2;
            size_t left = count - at > 2 ? count - at - 2 : 0;
            // The number of repetitions, 0 for endless.
            if (left > 0 && bytes[at + 1] == APPLICATION && left > 16 && isLoop(content) && content[12] == 3
                && content[13] == 1) {
                uint32_t again = pair(content + 14);
                found.loops = again == 0 ? 0 : again + 1;
                isAnimated = true;
            }
            if (left > 4 && bytes[at + 1] == CONTROL && content[0] == 4) isAnimated |= content[2] || content[3];
            at = left > 0 ? blocksEnd(bytes, count, at + 2) : count + 1;
        } else if (block == IMAGE && count - at > 10) {
            if (found.frames++ == 0) tern_gif_grow(&found.width, &found.height, bytes + at + 1);
            at = blocksEnd(bytes, count, at + 10 + colors(bytes[at + 9]) + 1);
        } else {
            // Any byte that does not start a frame is the end of the file, as in browsers.
            found.isCut = block == IMAGE;
            found.hasEnd = block != IMAGE;
            return found;
        }
    }
    // A still picture is complete if the bytes end exactly here.
    if (at == count && found.frames == 1 && !isAnimated) found.isCut = false;
    return found;
}
