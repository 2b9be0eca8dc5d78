// What processors do to premultiplied RGBA8, in groups of rows, so that the caller can look for cancellation between
// two. Source and target never overlap. Every effect keeps a colour at or below its alpha.
#ifndef CTERNEFFECTS_H
#define CTERNEFFECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A picture to read: its first pixel, the bytes from row to row, its size.
typedef struct {
    const uint8_t *pixels;
    size_t stride;
    uint32_t width, height;
} tern_picture;

/// A colour with straight alpha.
typedef struct {
    uint8_t red, green, blue, alpha;
} tern_color;

/// Mirrors rows: left and right, top and bottom, or both (half a turn). The target has the source's size.
void tern_flip_rows(
    tern_picture source, bool across, bool down, uint8_t *target, size_t targetStride, uint32_t firstRow,
    uint32_t rows);
/// A quarter turn, clockwise or not; the target has width and height exchanged.
void tern_turn_rows(
    tern_picture source, bool clockwise, uint8_t *target, size_t targetStride, uint32_t firstRow, uint32_t rows);
/// Any turn about the middle of both, by Catmull-Rom with anti-aliased edges, laid over the background.
void tern_rotate_rows(
    tern_picture source, double cosine, double sine, tern_color background, uint8_t *target, size_t targetStride,
    uint32_t targetWidth, uint32_t targetHeight, uint32_t firstRow, uint32_t rows);

/// Cuts to a rounded rectangle of the source's size and paints a border along its inner edge. The radii, in pixels, are
/// those of the corners at top left, top right, bottom right, bottom left; each is at most half the shorter side. The
/// part of a pixel that is covered is exact. False when memory is short.
bool tern_frame_rows(
    tern_picture source, const double radii[4], double border, tern_color color, uint8_t *target, size_t targetStride,
    uint32_t firstRow, uint32_t rows);

/// The colour where the picture is: source-atop.
void tern_tint(const uint8_t *source, uint8_t *target, size_t pixels, tern_color color);
/// Rec. 709 luma of the sRGB values in place of each colour.
void tern_luma(const uint8_t *source, uint8_t *target, size_t pixels);
/// The colour over all of the picture: source-over.
void tern_cover(const uint8_t *source, uint8_t *target, size_t pixels, tern_color color);
/// Another picture's pixels over these, with an opacity of 65,536 at most.
void tern_over(const uint8_t *source, const uint8_t *above, uint8_t *target, size_t pixels, uint32_t opacity);

/// Returns the bytes that a blur takes for the line that it works on.
uint64_t tern_blur_memory(uint32_t width, uint32_t height, double sigma);
/// The vertical half of a Gaussian blur, for some columns. At the edges the picture is continued by its mirror image, so
/// that its mean stays what it is. False when memory is short.
bool tern_blur_columns(
    tern_picture source, double sigma, uint8_t *target, size_t targetStride, uint32_t firstColumn, uint32_t columns);
/// The horizontal half, in place. False when memory is short.
bool tern_blur_rows(
    uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, double sigma, uint32_t firstRow, uint32_t rows);

#endif
