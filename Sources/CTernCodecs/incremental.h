// The state that the incremental decoders share: the bytes that are not consumed yet, the canvas, and the render
// cursor.
#ifndef TERN_INCREMENTAL_H
#define TERN_INCREMENTAL_H

#include "CTernCodecs.h"
#include "png_samples.h"

typedef struct {
    tern_codec_result (*step)(tern_feed *feed, char *error);
    tern_codec_result (*start)(tern_feed *feed, uint32_t leastWidth, uint32_t leastHeight, char *error);
    /// Writes the picture. If NULL, the canvas is the picture.
    tern_codec_result (*render)(tern_feed *feed, tern_canvas canvas, uint32_t rows, char *error);
    tern_codec_result (*verdict)(const tern_feed *feed, char *error);
    void (*close)(tern_feed *feed);
    const uint8_t *(*profile)(tern_feed *feed, size_t *count, int *channels);
    /// Looks for the end of the file in bytes that arrive, also behind the picture. NULL if the steps find it.
    void (*watch)(tern_feed *feed, const uint8_t *bytes, size_t count);
    /// A Boolean value that indicates whether no step needs the bytes behind the picture.
    bool isDoneOnce;
} tern_feed_format;

struct tern_feed {
    const tern_feed_format *format;
    tern_feed_limits limits;
    tern_codec_info info;
    tern_feed_state state;
    uint8_t *bytes;
    // The bytes from `start` to `end` are not consumed yet. All bytes stay until the picture is started, because WebP's
    // decoder reads earlier ones again.
    size_t start, end, capacity;
    bool hasEnded, hasFailed, keepsBytes, isDone;
    // Boolean values that indicate whether bytes are only gathered, regardless of the format, and whether a PNG's bytes
    // are, up to its end chunk.
    bool isPassed, isAwaited;
    uint8_t *canvas;
    const tern_icc *ink;
    uint32_t rendered;
};

/// Each of these functions returns a zeroed structure that begins with a tern_feed, or NULL.
tern_feed *tern_jpeg_feed(void);
tern_feed *tern_png_feed(void);
tern_feed *tern_webp_feed(void);
tern_feed *tern_gif_feed(void);
tern_feed *tern_jxl_feed(void);

/// The limits for a picture whose header has been checked.
static const tern_feed_limits tern_no_limits = {.pixels = INT32_MAX, .memory = UINT64_MAX};

/// The destination of the rows of a whole PNG file: a picture's buffer or a resizer.
typedef struct {
    tern_canvas canvas;
    tern_resize *resize;
    bool premultiplies;
} tern_png_target;

/// Creates the incremental PNG decoder for a whole file. Borrows the file's bytes and skips animation chunks. Returns
/// NULL when memory is short.
tern_feed *tern_png_still(const uint8_t *bytes, size_t count, tern_feed_limits limits);
/// Reads up to the picture's data. Call it once, before the rows.
tern_codec_result tern_png_still_header(tern_feed *feed, char *error);
/// Returns the samples, and the position of the first chunk with picture data, after the header.
const tern_png_samples *tern_png_still_samples(const tern_feed *feed, size_t *dataStart);
/// Reads up to about `rows` rows. Returns MORE until the last row, then OK if the picture is complete.
tern_codec_result tern_png_still_rows(tern_feed *feed, tern_png_target target, uint32_t rows, char *error);
void tern_png_still_close(tern_feed *feed);

static inline size_t tern_feed_left(const tern_feed *feed) { return feed->end - feed->start; }

/// Returns the result of a step that lacks bytes: STARVED, or TRUNCATED after the end.
tern_codec_result tern_feed_starved(const tern_feed *feed, char *error);
/// Allocates a cleared canvas of the size in the feed's state.
tern_codec_result tern_feed_canvas(tern_feed *feed, char *error);

#endif
