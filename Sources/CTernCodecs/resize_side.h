// The weights of Lanczos3 for the pixels of one side.
#ifndef TERN_RESIZE_SIDE_H
#define TERN_RESIZE_SIDE_H

#include "CTernCodecs.h"

/// One side of a resize: the pixels of the source, the visible part of them, and the pixels of the target.
typedef struct {
    uint32_t size;
    double extent;
    uint32_t target, taps;
    double scale, stretch;
} tern_side;

/// Returns a side whose windows have `step` taps or a multiple of it. They are within the source unless the source
/// itself is shorter.
tern_side tern_make_side(uint32_t size, uint64_t eighths, uint32_t target, uint32_t step);
/// Computes the weights of a target pixel, and where its window starts. The source's last pixel is weighted by its
/// visible part.
void tern_weigh(const tern_side *side, uint32_t index, uint32_t *start, double *row);

#endif
