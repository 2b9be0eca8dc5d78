// Decompresses zlib streams that are whole and whose contents have a known size: by libdeflate, which is loaded when the
// first one arrives, or by zlib, which takes half as long again.
#ifndef TERN_DEFLATE_H
#define TERN_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Decompresses a stream whose contents have exactly the size. Returns false if the stream is damaged, its contents have
/// another size, or bytes follow it; the contents are undefined then.
bool tern_inflate(const uint8_t *stream, size_t count, uint8_t *contents, size_t size);

/// Returns the CRC-32 of bytes, or the one that continues an earlier one; 0 is that of no bytes.
uint32_t tern_crc32(uint32_t earlier, const uint8_t *bytes, size_t count);

#endif
