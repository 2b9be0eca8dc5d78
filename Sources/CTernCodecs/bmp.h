// The declarations that bmp.c and ico.c share: a bitmap with and without its file header.
#ifndef TERN_BMP_H
#define TERN_BMP_H

#include "CTernCodecs.h"

struct tern_bmp {
    const uint8_t *bytes;
    size_t count;
    uint32_t width, height, row;
    unsigned bits, compression;
    bool topDown;
    // The position of the rows, the number of bytes of a row, and the number of them that are pixels. The rest is
    // padding, which the last row of some files lacks.
    size_t pixels, stride, line;
    // The RGBA colour of each index. An index without an entry is opaque black.
    uint8_t palette[256][4];
    struct { uint32_t mask; unsigned shift, width; } channels[4];
    // The position of a run-length stream, and the column that it is at.
    size_t at;
    uint32_t column;
    // Boolean values that indicate whether the stream has begun, has ended, and has the code for its end.
    bool started, ended, hasEndCode;
    // Boolean values that indicate whether a pixel had alpha and whether there is an ICC profile, and the profile's
    // position.
    bool alphaSeen, hasProfile;
    size_t profile, profileCount;
};

/// Opens a bitmap that begins with its information header. `pixels` is the position of its rows, or 0 if they follow
/// the colours. In an icon, the header's height also counts the mask, and the fourth byte of 32-bit pixels is alpha.
tern_codec_result tern_dib_open(
    struct tern_bmp *bmp, const uint8_t *bytes, size_t count, size_t pixels, bool icon, char *error);

static inline uint32_t tern_le16(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }
static inline uint32_t tern_le32(const uint8_t *at) { return tern_le16(at) | tern_le16(at + 2) << 16; }

#endif
