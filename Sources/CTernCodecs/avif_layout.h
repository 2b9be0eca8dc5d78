// The used parts of libavif's structures. The layout is that of <avif/avif.h> 0.11.1 (libavif.so.15), and that of 1.0
// and later (libavif.so.16), whose header states that new members are added only behind those of 1.0.0. Other versions
// are refused.
#ifndef TERN_AVIF_LAYOUT_H
#define TERN_AVIF_LAYOUT_H

#include "CTernCodecs.h"

#define IMAGE_HEAD                                                                                                    \
    uint32_t width, height, depth;                                                                                    \
    int format, range, chromaPosition;                                                                                \
    uint8_t *planes[3];                                                                                               \
    uint32_t rowBytes[3];                                                                                             \
    int ownsPlanes;                                                                                                   \
    uint8_t *alpha;                                                                                                   \
    uint32_t alphaRowBytes;                                                                                           \
    int ownsAlpha, premultiplied;                                                                                     \
    struct { uint8_t *data; size_t size; } icc;                                                                       \
    uint16_t primaries, transfer, matrix;
typedef struct { uint32_t flags, spacing[2], aperture[8]; uint8_t angle, axis; } transforms;
typedef struct { IMAGE_HEAD transforms transforms; } image0;
typedef struct { IMAGE_HEAD uint16_t light[2]; transforms transforms; } image1;

#define PIXELS_HEAD                                                                                                   \
    uint32_t width, height, depth;                                                                                    \
    int format, upsampling, downsampling, avoidLibYUV, ignoreAlpha, premultiplied, isFloat;
// libavif writes defaults into this structure. The union has room for members that later versions add.
typedef union {
    struct { PIXELS_HEAD uint8_t *pixels; uint32_t rowBytes; } zero;
    struct { PIXELS_HEAD int maxThreads; uint8_t *pixels; uint32_t rowBytes; } one;
    uint8_t room[512];
} rgb;

enum { MONOCHROME = 4, RGBA = 1, OK = 0, UNSUPPORTED_DEPTH = 6, NO_CODEC = 15, OUT_OF_MEMORY = 26 };

/// Returns a function of the library that `tern_avif_obstacle` has found, or NULL.
void *tern_avif_symbol(const char *name);
/// Returns whether the library that was found is 1.0 or later.
bool tern_avif_is_modern(void);

#endif
