// The compressed pixels of a GIF's frame.
#ifndef TERN_LZW_H
#define TERN_LZW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERN_LZW_CODES = 4096, TERN_LZW_WIDTH = 65535 };

/// The string of a code. Its last 1 to 8 bytes are the tail, from the lowest bits on. The others are the string of the
/// code `head`.
typedef struct {
    uint64_t tail;
    uint16_t head;
    /// The number of bytes after the first one.
    uint16_t more;
    /// The code that this code extends by one byte.
    uint16_t prefix;
    uint8_t first;
} tern_lzw_string;

/// A decoder of LZW (GIF 89a, appendix F) that takes one sub-block after the other and returns rows. Its results are
/// those of giflib for all bytes.
typedef struct {
    /// The reason why there are no more rows, or NULL.
    const char *damage;
    // The bytes of the sub-block that are not read yet, and the bits before them.
    const uint8_t *bytes, *end;
    uint64_t pool;
    unsigned held;
    // The first size of a code and the current one, the code that the next code defines, and the last code.
    unsigned size, bits, next, last;
    // Whether an unknown code was used, so that strings are known only by following their prefixes.
    bool isLoose;
    uint32_t width;
    // The number of pixels that are not returned yet, and the part of the window with pixels.
    uint64_t left;
    size_t start, filled;
    tern_lzw_string table[TERN_LZW_CODES];
    // A row, the rest of the longest string, and what a copy of eight bytes writes behind it.
    uint8_t window[TERN_LZW_WIDTH + TERN_LZW_CODES + 8];
} tern_lzw;

/// Starts a frame with the size in bits that the file states for its colours.
void tern_lzw_start(tern_lzw *lzw, unsigned size, uint32_t width, uint32_t height);
/// Takes a sub-block, which begins with its size, when the one before it is read. The bytes are borrowed until then.
void tern_lzw_block(tern_lzw *lzw, const uint8_t *block);
/// Returns the next row, valid until the next call; NULL after the last one, at damage, and if it needs a sub-block.
const uint8_t *tern_lzw_row(tern_lzw *lzw);

#endif
