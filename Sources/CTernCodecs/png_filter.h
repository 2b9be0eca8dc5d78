// The filters of a PNG picture's rows (W3C PNG, third edition, §9).
#ifndef TERN_PNG_FILTER_H
#define TERN_PNG_FILTER_H

#include <stddef.h>
#include <stdint.h>

enum {
    TERN_PNG_NONE, TERN_PNG_SUB, TERN_PNG_UP, TERN_PNG_AVERAGE, TERN_PNG_PAETH,
    /// The number of bytes behind a row that the functions below may read, and behind one that they may overwrite.
    TERN_PNG_SLACK = 8
};

/// Reverses the filter of a row of `count` bytes. `step` is the number of bytes of a pixel, at least 1. The row above is
/// zero for the first one.
void tern_png_unfilter(
    int filter, const uint8_t *from, const uint8_t *above, uint8_t *row, size_t count, unsigned step);

/// Does the same for two rows with the filter of Paeth, which follow each other, for a step of 3 or 4.
void tern_png_unfilter_two(
    const uint8_t *from, const uint8_t *fromSecond, const uint8_t *above, uint8_t *row, uint8_t *second, size_t count,
    unsigned step);

#endif
