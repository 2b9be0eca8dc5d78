// The decoder of HPACK that the tests of TernEngine read the requests of a client with.
#ifndef CTERNTESTHTTP2_H
#define CTERNTESTHTTP2_H

#if defined(__linux__)
#include <stddef.h>
#include <stdint.h>

/// Returns a decoder, or NULL without memory. It lives as long as its connection.
void *tern_test_inflater_new(void);
void tern_test_inflater_free(void *inflater);
/// Writes the fields of a block as lines "name: value\n" to `text`. A line begins with "!" if no table may keep the
/// field. Returns the length of the text, or -1 for a block that is not valid or too long.
ptrdiff_t tern_test_inflate(void *inflater, const uint8_t *block, size_t length, uint8_t *text, size_t capacity);
#endif

#endif
