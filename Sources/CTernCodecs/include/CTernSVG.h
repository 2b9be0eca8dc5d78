// SVG as a C API: the size of a file, and a process that draws it. Only one thread at a time uses a handle.
#ifndef CTERNSVG_H
#define CTERNSVG_H

#include "CTernCodecs.h"

/// A size in pixels of CSS, of which 96 are an inch. Both are at least a thousandth and at most 1,000 million.
typedef struct {
    double width, height;
} tern_svg_size;

/// Reads the size of a file from its first element: `width` and `height`, of which one that is missing or relative
/// follows from `viewBox`, or is 300 or 150. The bytes are UTF-8 or another extension of ASCII, or UTF-16, and can be
/// compressed by gzip. Returns UNSUPPORTED if the first element is not `svg` or begins behind the first MiB, TRUNCATED
/// if its tag is cut, and CORRUPT if its tag is damaged or its size is zero.
tern_codec_result tern_svg_measure(const uint8_t *bytes, size_t count, tern_svg_size *size, char *error);
/// Returns false if the end tag of the first element is missing, and true if it is there or if it cannot be told.
bool tern_svg_ends(const uint8_t *bytes, size_t count);

typedef struct {
    /// The path of rsvg-convert.
    const char *program;
    /// The picture to draw, in pixels, and the size of the file, which is stretched to it.
    uint32_t width, height;
    tern_svg_size size;
    /// The bytes of memory, and the time, that the process may take.
    uint64_t memory, nanoseconds;
} tern_svg_settings;

/// A process that draws a file. It reads nothing but the bytes, the libraries and the fonts of the system.
typedef struct tern_svg tern_svg;
/// Starts the process. The bytes must outlive the handle, which only the thread that opened it may use. Results in
/// UNSUPPORTED if the program does not start.
tern_svg *tern_svg_open(
    const uint8_t *bytes, size_t count, tern_svg_settings settings, int *result, char *error);
/// Passes bytes to and from the process for at most 20 milliseconds. Returns MORE until the picture is there, and LIMIT
/// if it takes too much time or memory.
tern_codec_result tern_svg_step(tern_svg *svg, char *error);
/// Returns the picture as PNG, after `tern_svg_step` has returned OK.
const uint8_t *tern_svg_picture(const tern_svg *svg, size_t *count);
/// Ends the process if it still runs.
void tern_svg_close(tern_svg *svg);
/// Returns whether the kernel keeps the process from files outside the system's folders.
bool tern_svg_confines_files(void);
/// Returns the number of processes that are open, for tests.
int tern_svg_process_count(void);

#endif
