// Rounded rectangles. The covered part of each pixel is computed from the exact area, not from samples.
#include "CTernEffects.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/// Edges in pixels, and the radii of the corners from the top left clockwise.
typedef struct {
    double left, top, right, bottom, radii[4];
} shape;

/// Returns the integral of √(r²−t²) from 0 to t.
static double sector(double t, double radius) {
    return (t * sqrt(fmax(0, radius * radius - t * t)) + radius * radius * asin(fmin(1, t / radius))) / 2;
}

/// Returns the area of [0, x] × [0, y] within the disc of the radius around the origin.
static double quadrant(double x, double y, double radius) {
    if (x * x + y * y <= radius * radius) return x * y;
    double from = sqrt(fmax(0, radius * radius - y * y));
    return from * y + sector(x, radius) - sector(from, radius);
}

/// Subtracts the area that a corner cuts off from the pixels of a row. `near` and `far` are the row's distances from
/// the centre of the corner's circle. `edge` is the shape's edge. `side` is 1 if the shape is to the right of the edge,
/// and −1 if it is to the left.
static void cutCorner(
    float *cover, uint32_t width, double radius, double near, double far, double edge, double side) {
    if (radius <= 0 || near >= far) return;
    const double middle = edge + side * radius, whole = sqrt(fmax(0, radius * radius - far * far));
    // Goes from the edge inwards, up to the first pixel that is wholly within the circle.
    for (double x = side > 0 ? floor(edge) : ceil(edge) - 1; x >= 0 && x < width; x += side) {
        double inner = side > 0 ? middle - fmin(x + 1, middle) : fmax(x, middle) - middle;
        double outer = side > 0 ? middle - fmax(x, edge) : fmin(x + 1, edge) - middle;
        if (outer <= whole || inner >= outer) break;
        double cut = (outer - inner) * (far - near);
        if (inner * inner + near * near < radius * radius)
            cut -= quadrant(outer, far, radius) - quadrant(inner, far, radius) - quadrant(outer, near, radius)
                + quadrant(inner, near, radius);
        double left = cover[(size_t)x] - cut;
        cover[(size_t)x] = left < 1e-6 ? 0 : (float)left;
    }
}

/// Computes the part of each pixel of a row that the shape covers, from 0 to 1.
static void coverRow(const shape *shape, uint32_t y, uint32_t width, float *cover) {
    const double down = fmin(y + 1, shape->bottom) - fmax(y, shape->top);
    memset(cover, 0, width * sizeof *cover);
    if (down <= 0 || shape->right <= shape->left) return;
    const uint32_t first = (uint32_t)shape->left, end = (uint32_t)ceil(shape->right);
    for (uint32_t x = first; x < end; x++) cover[x] = (float)down;
    cover[first] = (float)(down * (fmin(first + 1, shape->right) - shape->left));
    if (end - 1 > first) cover[end - 1] = (float)(down * (shape->right - (end - 1)));
    for (int corner = 0; corner < 4; corner++) {
        const double radius = shape->radii[corner];
        double near, far;
        if (corner < 2) {
            const double middle = shape->top + radius;
            near = middle - fmin(y + 1, middle);
            far = middle - fmax(y, shape->top);
        } else {
            const double middle = shape->bottom - radius;
            near = fmax(y, middle) - middle;
            far = fmin(y + 1, shape->bottom) - middle;
        }
        const bool atLeft = corner == 0 || corner == 3;
        cutCorner(cover, width, radius, near, far, atLeft ? shape->left : shape->right, atLeft ? 1 : -1);
    }
}

bool tern_frame_rows(
    tern_picture source, const double radii[4], double border, tern_color color, uint8_t *target, size_t targetStride,
    uint32_t firstRow, uint32_t rows) {
    const uint32_t width = source.width;
    float *outer = malloc(width * 2 * sizeof *outer), *inner = outer + width;
    if (!outer) return false;
    shape whole = {0, 0, source.width, source.height, {radii[0], radii[1], radii[2], radii[3]}};
    shape open = {border, border, source.width - border, source.height - border, {0}};
    for (int i = 0; i < 4; i++) open.radii[i] = fmax(0, radii[i] - border);
    const float alpha = color.alpha / 255.0f;
    const float paint[4] = {color.red * alpha, color.green * alpha, color.blue * alpha, color.alpha};
    for (uint32_t y = firstRow; y < firstRow + rows && y < source.height; y++) {
        const uint8_t *from = source.pixels + source.stride * y;
        uint8_t *to = target + targetStride * y;
        memcpy(to, from, (size_t)width * 4);
        coverRow(&whole, y, width, outer);
        if (border > 0) coverRow(&open, y, width, inner);
        for (uint32_t x = 0; x < width; x++) {
            const float bare = border > 0 ? inner[x] : outer[x];
            if (bare == 1) continue;
            // In the border's part of the pixel, the picture shows through the paint. The part beyond the shape is
            // empty.
            const float painted = outer[x] > bare ? outer[x] - bare : 0;
            const float kept = bare + (1 - alpha) * painted;
            for (uint32_t c = 0; c < 4; c++)
                to[x * 4 + c] = (uint8_t)(from[x * 4 + c] * kept + paint[c] * painted + 0.5f);
        }
    }
    free(outer);
    return true;
}
