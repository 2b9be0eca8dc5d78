// The colours of a GIF's frame.
#ifndef TERN_GIF_PALETTE_H
#define TERN_GIF_PALETTE_H

#include "CTernCodecs.h"

/// At most 256 colours, and the colour of each pixel among them. Colours are cells of 5 bits a channel once there are
/// more than fit.
typedef struct tern_gif_palette tern_gif_palette;
tern_gif_palette *tern_gif_palette_open(void);
void tern_gif_palette_close(tern_gif_palette *palette);

/// Chooses the colours of the pixels whose mask is not 0: their own ones if there are not more than the limit, and
/// otherwise the means of as many groups of similar ones (P. Heckbert, Color Image Quantization, 1982). Returns the
/// number of colours. Pixels are RGBA, of which alpha does not count.
unsigned tern_gif_palette_choose(
    tern_gif_palette *palette, const uint8_t *pixels, const uint8_t *mask, size_t count, unsigned limit);
/// Returns the red, green and blue of a colour.
const uint8_t *tern_gif_palette_color(const tern_gif_palette *palette, unsigned index);
/// Writes the index of each pixel whose mask is not 0. If the colours are groups, the error of each pixel is passed to
/// the next ones to the right and below (R. W. Floyd and L. Steinberg, 1976). Returns false when memory is short.
bool tern_gif_palette_map(
    tern_gif_palette *palette, const uint8_t *pixels, const uint8_t *mask, size_t width, size_t height,
    uint8_t *indices);

#endif
