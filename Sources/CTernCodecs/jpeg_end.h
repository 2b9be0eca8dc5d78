// Looks for the end marker of a JPEG file, in the whole file or as its bytes arrive.
#ifndef TERN_JPEG_END_H
#define TERN_JPEG_END_H

#include "CTernCodecs.h"

typedef struct {
    // The position in the file: the kind of the next byte, and the number of bytes to skip.
    enum {
        TERN_JPEG_START, TERN_JPEG_SKIP, TERN_JPEG_DATA, TERN_JPEG_CODE, TERN_JPEG_LENGTH, TERN_JPEG_LENGTH_LOW
    } place;
    size_t left;
    bool isSeen;
} tern_jpeg_end;

/// Reads the next bytes of a file. The structure is zeroed before the first ones.
void tern_jpeg_end_read(tern_jpeg_end *end, const uint8_t *bytes, size_t count);

#endif
