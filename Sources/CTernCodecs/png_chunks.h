// The chunks of a PNG file that Tern reads itself, and those that it leaves to libpng (W3C PNG, third edition, §5 and
// §11), for the decoders of stills and animations.
#ifndef TERN_PNG_CHUNKS_H
#define TERN_PNG_CHUNKS_H

#include "CTernCodecs.h"

enum {
    /// The number of bytes of the longest chunk without picture data that is read.
    TERN_PNG_CHUNK_LIMIT = 8 << 20,
    TERN_PNG_IHDR = 0x49484452, TERN_PNG_IDAT = 0x49444154, TERN_PNG_eXIf = 0x65584966, TERN_PNG_cICP = 0x63494350,
    TERN_PNG_acTL = 0x6163544C,
    TERN_PNG_fcTL = 0x6663544C, TERN_PNG_fdAT = 0x66644154, TERN_PNG_IEND = 0x49454E44
};

static inline uint32_t tern_png_number(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/// Returns whether a chunk's type is critical (§5.4). The picture cannot be decoded without such a chunk.
static inline bool tern_png_is_critical(uint32_t type) { return !(type & 0x20000000); }

/// Returns whether libpng gets the chunks of a type: all critical chunks, and the ancillary ones that change pixels or
/// colours. libpng never sees any other chunk.
bool tern_png_is_decoded(uint32_t type);

/// Checks the data of the header chunk, 13 bytes, against the limits, before libpng allocates rows. Sets the error text
/// if they exceed one.
bool tern_png_fits(const uint8_t *header, const tern_feed_limits *limits, char *error);

/// The data of a picture: the position of the first chunk that can hold them, the type of their chunks, IDAT or fdAT,
/// and the size of the picture.
typedef struct {
    size_t from;
    uint32_t type, width, height;
} tern_png_data;

/// Returns whether the zlib stream of a picture's data is complete and has a correct checksum. The end of the file may
/// be missing. libpng reads no further than the last row, and its result for the bytes after it depends on how they are
/// split into chunks.
bool tern_png_has_stream(const uint8_t *bytes, size_t count, tern_png_data data);

/// The orientation that the chunks so far state: that of the first eXIf chunk with a correct checksum, before or behind
/// the picture's data (§11.3.4.6). 1 if there is none.
typedef struct {
    bool isKnown;
    int orientation;
} tern_png_exif;

/// Reads an eXIf chunk, which must be there as a whole.
void tern_png_read_exif(tern_png_exif *exif, const uint8_t *chunk);
/// Returns the orientation of a whole file.
tern_png_exif tern_png_find_exif(const uint8_t *bytes, size_t count);

/// Reads a cICP chunk, which must be there as a whole (§11.3.2.6). Returns false if it is damaged or its colours are not
/// RGB of full range.
bool tern_png_read_cicp(tern_color_numbers *color, const uint8_t *chunk);

/// Returns whether the bytes of an animated PNG end before the last of the frames that it states does, or contradict
/// each other.
bool tern_apng_is_cut(const uint8_t *bytes, size_t count);

/// Returns whether the last bytes of a PNG file are its end chunk. A chunk that reaches beyond them has a wrong length.
bool tern_png_has_end(const uint8_t *bytes, size_t count);

#endif
