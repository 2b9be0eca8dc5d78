// The parts of libjxl that decoding and encoding share. The structures are those of <jxl/decode.h> and <jxl/encode.h>,
// the same in libjxl 0.7 to 0.11. Other versions are refused.
#ifndef TERN_JXL_LAYOUT_H
#define TERN_JXL_LAYOUT_H

#include "loaded.h"

#include <stdint.h>

typedef struct {
    int hasContainer;
    uint32_t width, height, bits, exponentBits;
    float brightest, darkest;
    int isRelative;
    float linearBelow;
    int usesOriginalProfile, hasPreview, hasAnimation, orientation;
    uint32_t colorChannels, extraChannels, alphaBits, alphaExponentBits;
    int isPremultiplied;
    uint32_t previewWidth, previewHeight, ticks, perSeconds, loops;
    int hasTimecodes;
    uint32_t intrinsicWidth, intrinsicHeight;
    // Members that later versions add.
    uint8_t room[512];
} imageInfo;
typedef struct { uint32_t duration, timecode, nameLength; int isLast; uint8_t room[512]; } frameInfo;
typedef struct { uint32_t channels; int type, endianness; size_t align; } pixelFormat;
typedef struct {
    int space, white;
    double whitePoint[2];
    int primaries;
    double points[6];
    int transfer;
    double gamma;
    int intent;
} colorEncoding;

enum { DONE = 0, FAILED = 1, BYTES = 2, WORDS = 3 };

/// Loads libjxl and finds the functions. `version` points to the place of the one that tells the version. Returns the
/// number behind its first point, such as 11 for 0.11, or 0 with a text in `obstacle`, of 160 characters.
uint32_t tern_jxl_load(const tern_symbol *symbols, size_t count, uint32_t (**version)(void), char *obstacle);

#endif
