// The samples of a PNG picture and their conversion to RGBA of 8 bits (W3C PNG, third edition, §6 and §13).
#ifndef TERN_PNG_SAMPLES_H
#define TERN_PNG_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The numbers of the header, and what the chunks PLTE and tRNS state.
typedef struct {
    uint32_t width, height;
    uint8_t depth, color;
    bool isInterlaced;
    /// A Boolean value that indicates whether the samples of one colour are transparent; the samples.
    bool hasKey;
    uint16_t key[3];
    /// The number of a palette's colours, and RGBA of each. The colours beyond them are black.
    unsigned colorCount;
    uint8_t colors[256][4];
} tern_png_samples;

/// Returns the number of samples of a pixel.
unsigned tern_png_sample_channels(const tern_png_samples *samples);
/// Returns the number of bytes of a row without its filter.
uint64_t tern_png_row_bytes(const tern_png_samples *samples);
/// Prepares the colours of samples of up to 8 bits that are looked up: those of a palette, and greys.
void tern_png_prepare(tern_png_samples *samples);
/// Converts a row to straight RGBA, after `tern_png_prepare`. Some bytes behind the row may be read.
void tern_png_convert(const tern_png_samples *samples, const uint8_t *row, uint8_t *pixels);

#endif
