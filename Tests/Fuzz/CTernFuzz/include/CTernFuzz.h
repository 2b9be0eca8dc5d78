// System calls of the fuzz program: keeps the input that crashes it, ends inputs that hang, measures time and memory.
#ifndef CTERNFUZZ_H
#define CTERNFUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The size of the largest input, in bytes.
#define TERN_FUZZ_CAPACITY (1 << 20)

/// Keeps every input in the file from now on, and ends the process on one that takes more than `seconds` of processor
/// time, or ten times that by the clock.
bool tern_fuzz_open(const char *path, int seconds);
/// Writes an input to the file before it is used: after a crash, the file holds that input behind its length (8 bytes).
void tern_fuzz_begin(const uint8_t *bytes, size_t count);
/// Ends the time limit of the input.
void tern_fuzz_end(void);
/// The processor time of this process, in nanoseconds.
uint64_t tern_fuzz_spent(void);
/// The number of bytes allocated now, as the address sanitizer counts them; 0 without it.
size_t tern_fuzz_allocated(void);
/// The number of bytes of this process that are in memory now.
size_t tern_fuzz_resident(void);

/// Decodes the first frame of a GIF without extensions with giflib, to a byte a pixel. Returns the number of whole rows.
size_t tern_fuzz_giflib_rows(const uint8_t *bytes, size_t count, uint8_t *indices);

/// Decodes a PNG of a size with libpng to premultiplied RGBA. Returns the number of rows before the first damage.
size_t tern_fuzz_libpng_rows(const uint8_t *bytes, size_t count, uint32_t width, uint32_t height, uint8_t *pixels);

#endif
