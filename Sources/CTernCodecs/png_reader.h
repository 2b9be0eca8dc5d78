// Reads the rows of a whole PNG file without libpng.
#ifndef TERN_PNG_READER_H
#define TERN_PNG_READER_H

#include "png_samples.h"

typedef struct tern_png_reader tern_png_reader;

/// Returns the number of bytes that the reader of a whole file takes besides a room; UINT64_MAX if it does not read the
/// file. The first chunk with picture data is at the position.
uint64_t tern_png_reader_memory(
    const uint8_t *bytes, size_t count, size_t from, const tern_png_samples *samples, size_t room);
/// Decompresses the picture's data. They are placed in the room if they fit. Returns NULL if the file is not wholly
/// sound; the room is undefined then.
tern_png_reader *tern_png_reader_open(
    const uint8_t *bytes, size_t count, size_t from, const tern_png_samples *samples, uint8_t *place, size_t room);
/// Writes the next row as straight RGBA. There are as many as the picture is high.
void tern_png_reader_next(tern_png_reader *rows, uint8_t *pixels);
void tern_png_reader_close(tern_png_reader *rows);

#endif
