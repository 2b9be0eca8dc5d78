// Estimates from a file's header the bytes that the libraries take besides their canvas. An estimate is never below the
// measured value and at most a little above it.
#ifndef TERN_MEMORY_H
#define TERN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// libpng keeps the row being read, the row before it, and a row for each step of the conversion to RGBA.
static inline uint64_t tern_png_memory(uint32_t width, unsigned depth, unsigned channels) {
    uint64_t read = ((uint64_t)width * depth * channels + 7) / 8, changed = (uint64_t)width * (depth == 16 ? 8 : 4);
    return read * 2 + changed + (1 << 20);
}

/// The frames of a GIF are drawn on a separate canvas, and a copy of it is kept before some frames.
static inline uint64_t tern_gif_memory(uint32_t width, uint32_t height) {
    return (uint64_t)width * height * 8 + (1 << 20);
}

/// Returns the size that a WebP file declares, which is available before all of its bytes are.
static inline size_t tern_webp_size(const uint8_t *bytes) {
    return 8 + (bytes[4] | (size_t)bytes[5] << 8 | (size_t)bytes[6] << 16 | (size_t)bytes[7] << 24);
}

/// libwebp decodes a lossless picture whole, at four bytes a pixel. The alpha channel of a lossy picture is such a
/// picture, of which one byte a pixel is kept. The codes of a lossless picture take much more memory than their bytes
/// in the file.
static inline uint64_t tern_webp_memory(uint32_t width, uint32_t height, bool lossless, bool alpha, size_t count) {
    uint64_t pixels = (uint64_t)width * height, most = 64 << 20, codes = count < most / 1400 ? count * 1400 : most;
    if (lossless) return pixels * 4 + (uint64_t)width * 80 + codes + (1 << 20);
    return (alpha ? pixels * 5 + codes : 0) + (uint64_t)width * 160 + (1 << 20);
}

/// The decoder of an animation keeps two canvases, and a frame can be any kind of picture.
static inline uint64_t tern_webp_frames_memory(uint32_t width, uint32_t height, size_t count) {
    return (uint64_t)width * height * 8 + tern_webp_memory(width, height, false, true, count);
}

#endif
