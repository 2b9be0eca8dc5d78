// What bmp.c and ico.c share: a bitmap with and without its file header.
#ifndef TERN_BMP_H
#define TERN_BMP_H

#include "CTernCodecs.h"

struct tern_bmp {
    const uint8_t *bytes;
    size_t count;
    uint32_t width, height, row;
    unsigned bits, compression;
    bool topDown;
    // Where the rows begin, and the bytes of one.
    size_t pixels, stride;
    // RGBA of each index; what no entry says is opaque black.
    uint8_t palette[256][4];
    struct { uint32_t mask; unsigned shift, width; } channels[4];
    // Run length: where the stream stands, and the column.
    size_t at;
    uint32_t column;
    bool started, ended;
    // Whether a pixel had alpha, and where an ICC profile lies.
    bool alphaSeen, hasProfile;
    size_t profile, profileCount;
};

/// A bitmap from its information header on: `pixels` says where its rows begin, 0 for right after the colours. In an
/// icon the header's height counts the mask too, and the fourth byte of 32 is alpha.
tern_codec_result tern_dib_open(
    struct tern_bmp *bmp, const uint8_t *bytes, size_t count, size_t pixels, bool icon, char *error);

static inline uint32_t tern_le16(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }
static inline uint32_t tern_le32(const uint8_t *at) { return tern_le16(at) | tern_le16(at + 2) << 16; }

#endif
