// The bytes that the libraries take beside the canvas that they are given, estimated from a file's header: never less
// than what was measured, and at most a little more.
#ifndef TERN_MEMORY_H
#define TERN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// libpng keeps a row as it is read, the one before, and a row with all that it is changed to on the way to RGBA.
static inline uint64_t tern_png_memory(uint32_t width, unsigned depth, unsigned channels) {
    uint64_t read = ((uint64_t)width * depth * channels + 7) / 8, changed = (uint64_t)width * (depth == 16 ? 8 : 4);
    return read * 2 + changed + (1 << 20);
}

/// The frames of a GIF are drawn on a canvas of their own, which is kept aside before some of them.
static inline uint64_t tern_gif_memory(uint32_t width, uint32_t height) {
    return (uint64_t)width * height * 8 + (1 << 20);
}

/// The size that a WebP file says it has, the same before all of its bytes are there.
static inline size_t tern_webp_size(const uint8_t *bytes) {
    return 8 + (bytes[4] | (size_t)bytes[5] << 8 | (size_t)bytes[6] << 16 | (size_t)bytes[7] << 24);
}

/// libwebp decodes a lossless picture whole, at four bytes a pixel. The alpha of a lossy one is such a picture, of which
/// one byte a pixel is kept. Codes of a lossless picture take much more memory than bytes of the file.
static inline uint64_t tern_webp_memory(uint32_t width, uint32_t height, bool lossless, bool alpha, size_t count) {
    uint64_t pixels = (uint64_t)width * height, most = 64 << 20, codes = count < most / 1400 ? count * 1400 : most;
    if (lossless) return pixels * 4 + (uint64_t)width * 80 + codes + (1 << 20);
    return (alpha ? pixels * 5 + codes : 0) + (uint64_t)width * 160 + (1 << 20);
}

/// An animation's decoder keeps two canvases, and a frame may be any kind of picture.
static inline uint64_t tern_webp_frames_memory(uint32_t width, uint32_t height, size_t count) {
    return (uint64_t)width * height * 8 + tern_webp_memory(width, height, false, true, count);
}

#endif
