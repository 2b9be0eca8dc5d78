// Effects of processors on premultiplied RGBA8, in groups of rows, so that the caller can check for cancellation
// between two of them. Source and target never overlap. Every effect keeps a colour at or below its alpha.
#ifndef CTERNEFFECTS_H
#define CTERNEFFECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A picture to read: its first pixel, the number of bytes from row to row, and its size.
typedef struct {
    const uint8_t *pixels;
    size_t stride;
    uint32_t width, height;
} tern_picture;

/// A colour with straight alpha.
typedef struct {
    uint8_t red, green, blue, alpha;
} tern_color;

/// Mirrors rows: left and right, top and bottom, or both (half a turn). The target has the size of the source. A pixel has
/// four or eight bytes.
void tern_flip_rows(
    tern_picture source, size_t pixel, bool across, bool down, uint8_t *target, size_t targetStride,
    uint32_t firstRow, uint32_t rows);
/// Turns the picture by a quarter, clockwise or counterclockwise. The target has width and height exchanged.
void tern_turn_rows(
    tern_picture source, size_t pixel, bool clockwise, uint8_t *target, size_t targetStride, uint32_t firstRow,
    uint32_t rows);
/// Rotates the picture by any angle about the centre, by Catmull-Rom with anti-aliased edges, over the background.
void tern_rotate_rows(
    tern_picture source, double cosine, double sine, tern_color background, uint8_t *target, size_t targetStride,
    uint32_t targetWidth, uint32_t targetHeight, uint32_t firstRow, uint32_t rows);

/// Cuts the picture to a rounded rectangle of the source's size and paints a border along its inner edge. The radii, in
/// pixels, are those of the corners at top left, top right, bottom right and bottom left. Each is at most half the
/// shorter side. The covered part of each pixel is exact. Returns false when memory is short.
bool tern_frame_rows(
    tern_picture source, const double radii[4], double border, tern_color color, uint8_t *target, size_t targetStride,
    uint32_t firstRow, uint32_t rows);

/// Paints the colour where the picture is (source-atop).
void tern_tint(const uint8_t *source, uint8_t *target, size_t pixels, tern_color color);
/// Replaces each colour by its luma: of sRGB's values by Rec. 709, or of Display P3's by the luminances of its primaries.
void tern_luma(const uint8_t *source, uint8_t *target, size_t pixels, bool isP3);
/// Returns a colour of sRGB in Display P3.
tern_color tern_color_in_p3(tern_color color);
/// Paints the colour over the whole picture (source-over).
void tern_cover(const uint8_t *source, uint8_t *target, size_t pixels, tern_color color);
/// Draws another picture's pixels over these, with an opacity of 65,536 at most.
void tern_over(const uint8_t *source, const uint8_t *above, uint8_t *target, size_t pixels, uint32_t opacity);

/// Returns the number of bytes that a blur takes for its current line.
uint64_t tern_blur_memory(uint32_t width, uint32_t height, double sigma);
/// Applies the vertical half of a Gaussian blur to some columns. At the edges, the picture is continued by its mirror
/// image, so that its mean does not change. Returns false when memory is short.
bool tern_blur_columns(
    tern_picture source, double sigma, uint8_t *target, size_t targetStride, uint32_t firstColumn, uint32_t columns);
/// Applies the horizontal half in place. Returns false when memory is short.
bool tern_blur_rows(
    uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, double sigma, uint32_t firstRow, uint32_t rows);

#endif
