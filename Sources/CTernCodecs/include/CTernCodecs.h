// Image codecs and the resize kernel behind a C API of plain functions: every jump of libjpeg and libpng starts and
// ends inside one call, and no call runs a callback of the caller. One handle serves one thread at a time.
#ifndef CTERNCODECS_H
#define CTERNCODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CTernEffects.h"

/// What a call came to.
typedef enum {
    TERN_CODEC_OK = 0,
    /// More of the same call is needed: look for cancellation, call again.
    TERN_CODEC_MORE = 1,
    /// Of an incremental decoder: bytes are wanted; the header is known; a scan or pass is complete, and more follow.
    TERN_CODEC_STARVED = 2,
    TERN_CODEC_HEADER = 3,
    TERN_CODEC_BOUNDARY = 4,
    TERN_CODEC_TRUNCATED = -1,
    TERN_CODEC_CORRUPT = -2,
    TERN_CODEC_UNSUPPORTED = -3,
    TERN_CODEC_MEMORY = -4,
    TERN_CODEC_SCANS = -5,
    /// The same for the limit on pixels, where a library would take memory before anybody else can look.
    TERN_CODEC_LIMIT = -5,
} tern_codec_result;

/// What the header says. Sizes are in pixels as stored, before orientation.
typedef struct {
    uint32_t width, height;
    /// EXIF orientation, 1 to 8.
    int orientation;
    bool hasAlpha, hasProfile;
    /// A Boolean value that indicates whether the samples are CMYK or YCCK, and one that indicates whether a JPEG has
    /// several scans.
    bool isInk, hasScans;
    /// Frames of an animation, 1 for a still image; how often it plays, 0 for ever.
    uint32_t frameCount, loopCount;
    /// The maximum number of bytes that the decoder takes besides its canvas, estimated from the header.
    uint64_t memory;
    /// A Boolean value that indicates whether the format declares an animation, regardless of the number of frames.
    bool isAnimation;
    /// A Boolean value that indicates whether the bytes end between two frames, where the decoder reports no error.
    bool isCut;
} tern_codec_info;

/// What the samples of a file's pixels are, for its colour profile. Of ink 255 is none.
enum { TERN_CHANNELS_GREY = 1, TERN_CHANNELS_RGB = 3, TERN_CHANNELS_INK = 4 };

/// A conversion of pixels to sRGB by an ICC profile, its own of primaries and curves, others by the
/// lcms2 that is found at run time.
typedef struct tern_icc tern_icc;
/// NULL if the profile is damaged or does not fit the samples, or lcms2 is needed and missing;
/// NULL and `plain` if it is sRGB.
tern_icc *tern_icc_open(const uint8_t *profile, size_t count, int channels, bool *plain);
/// Converts straight RGBA in place; alpha stays.
void tern_icc_convert(const tern_icc *icc, uint8_t *pixels, size_t stride, uint32_t width, uint32_t rows);
/// Converts a row of four inks a pixel to opaque RGBA.
void tern_icc_ink(const tern_icc *icc, const uint8_t *ink, uint8_t *pixels, uint32_t width);
void tern_icc_close(tern_icc *icc);
/// Whether lcms2 is there.
bool tern_icc_available(void);

/// A buffer for a picture's pixels, with the size that it was allocated for. If a decoder's library finds another size
/// in the file, the decoder writes nothing and returns CORRUPT. Memory safety does not depend on two readers of a
/// header agreeing.
typedef struct {
    uint8_t *pixels;
    size_t stride;
    uint32_t width, height;
} tern_canvas;

/// The size of a picture in pixels, and the eighths of a pixel that are visible across and down. When libjpeg scales,
/// the last column and row can cover less than a pixel.
typedef struct {
    uint32_t width, height;
    uint64_t eighthsAcross, eighthsDown;
} tern_extent;
/// Returns an extent in which every pixel is fully visible.
tern_extent tern_extent_whole(uint32_t width, uint32_t height);

typedef struct tern_resize tern_resize;

// Each decoder borrows its bytes: they outlive the handle. `error` points to 160 characters or more.
typedef struct tern_jpeg tern_jpeg;
tern_jpeg *tern_jpeg_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
/// The file's ICC profile, whose bytes are the handle's as those of each such function are; NULL if it is not whole.
const uint8_t *tern_jpeg_profile(tern_jpeg *jpeg, size_t *count, int *channels);
/// Converts inks by a profile, which outlives the handle, in place of mixing them. Before the first row.
void tern_jpeg_ink(tern_jpeg *jpeg, const tern_icc *color);
/// Returns the picture at the smallest DCT scale (1/8, 1/4, 1/2 or 1) that is at least as large as the size.
tern_extent tern_jpeg_scaled(uint32_t width, uint32_t height, uint32_t leastWidth, uint32_t leastHeight);
/// Starts with the scale that `tern_jpeg_scaled` finds.
tern_codec_result tern_jpeg_start(
    tern_jpeg *jpeg, uint32_t leastWidth, uint32_t leastHeight, int scanLimit, char *error);
/// Takes in some rows of the coefficients of a progressive image; MORE until all are there.
tern_codec_result tern_jpeg_prepare(tern_jpeg *jpeg, char *error);
/// Writes up to `rows` rows of RGBA at the next row of the whole picture's canvas. Returns MORE until the last row.
tern_codec_result tern_jpeg_rows(tern_jpeg *jpeg, tern_canvas canvas, uint32_t rows, char *error);
/// Does the same as `tern_jpeg_rows` and resizes the rows. The canvas has the target's size.
tern_codec_result tern_jpeg_resized(
    tern_jpeg *jpeg, tern_resize *resize, tern_canvas canvas, uint32_t rows, char *error);
/// TRUNCATED or CORRUPT if libjpeg had to invent pixels; OK otherwise.
tern_codec_result tern_jpeg_verdict(const tern_jpeg *jpeg, char *error);
void tern_jpeg_close(tern_jpeg *jpeg);

/// Walks over the markers of a file of the size, for a decoder that counts no scans: SCANS as of `tern_jpeg_start`.
tern_codec_result tern_jpeg_survey(
    const uint8_t *bytes, size_t count, uint32_t width, uint32_t height, int scanLimit, char *error);
/// Whether the picture's end marker is there; those of pictures within the headers do not count.
bool tern_jpeg_ends(const uint8_t *bytes, size_t count);

typedef struct tern_png tern_png;
tern_png *tern_png_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_png_profile(tern_png *png, size_t *count, int *channels);
/// As `tern_jpeg_rows`, straight alpha; an interlaced picture takes seven passes.
tern_codec_result tern_png_rows(tern_png *png, tern_canvas canvas, uint32_t rows, char *error);
bool tern_png_interlaced(const tern_png *png);
/// As `tern_jpeg_resized`, premultiplied if it has alpha. Not for interlaced pictures.
tern_codec_result tern_png_resized(
    tern_png *png, tern_resize *resize, tern_canvas canvas, uint32_t rows, char *error);
void tern_png_close(tern_png *png);

/// 0 for a still PNG, 1 for an animation that the still picture begins, 2 for one that it is no part of.
int tern_png_animation(const uint8_t *bytes, size_t count);
/// Animated PNG: the chunks are walked at opening, the frames composed in order.
typedef struct tern_apng tern_apng;
tern_apng *tern_apng_open(
    const uint8_t *bytes, size_t count, uint32_t frameLimit, tern_codec_info *info, int *result, char *error);
/// Decodes up to `rows` rows of the next frame; MORE until it is written as it shows, straight alpha. Its time is that
/// of the file.
tern_codec_result tern_apng_next(
    tern_apng *apng, tern_canvas canvas, uint32_t rows, uint64_t *microseconds, char *error);
void tern_apng_rewind(tern_apng *apng);
void tern_apng_close(tern_apng *apng);

/// Windows and OS/2 bitmaps: 1, 2, 4, 8, 16, 24 and 32 bits a pixel, masks, run lengths, either order of rows.
typedef struct tern_bmp tern_bmp;
tern_bmp *tern_bmp_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_bmp_profile(const tern_bmp *bmp, size_t *count, int *channels);
tern_codec_result tern_bmp_rows(tern_bmp *bmp, tern_canvas canvas, uint32_t rows, char *error);
void tern_bmp_close(tern_bmp *bmp);

/// Windows icons, the entries bitmaps or PNG. Opened, it stands at the largest.
typedef struct tern_ico tern_ico;
tern_ico *tern_ico_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
/// Goes to the smallest entry of at least the size, or else to the largest. Before the first row.
tern_codec_result tern_ico_choose(
    tern_ico *ico, uint32_t leastWidth, uint32_t leastHeight, tern_codec_info *info, char *error);
tern_codec_result tern_ico_rows(tern_ico *ico, tern_canvas canvas, uint32_t rows, char *error);
void tern_ico_close(tern_ico *ico);

typedef struct tern_webp tern_webp;
tern_webp *tern_webp_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_webp_profile(const tern_webp *webp, size_t *count, int *channels);
/// Starts writing straight RGBA of the canvas's size, which is never larger than the picture's own size.
tern_codec_result tern_webp_start(tern_webp *webp, tern_canvas canvas, char *error);
/// Decodes another stretch of the bytes; MORE until the last.
tern_codec_result tern_webp_step(tern_webp *webp, char *error);
void tern_webp_close(tern_webp *webp);

/// Animated WebP: composed frames in order, straight alpha.
typedef struct tern_webp_frames tern_webp_frames;
tern_webp_frames *tern_webp_frames_open(const uint8_t *bytes, size_t count, int *result, char *error);
/// Writes the next frame; its duration in milliseconds.
tern_codec_result tern_webp_frames_next(
    tern_webp_frames *frames, tern_canvas canvas, uint32_t *milliseconds, char *error);
void tern_webp_frames_rewind(tern_webp_frames *frames);
void tern_webp_frames_close(tern_webp_frames *frames);

/// The blocks of a GIF.
typedef struct {
    /// The number of frames that begin. The walk stops once it exceeds the limit.
    uint32_t frames;
    /// The number of times that the animation plays, 0 for endless.
    uint32_t loops;
    /// A Boolean value that indicates whether the bytes end before the file does. A still picture that lacks only the
    /// trailer is complete. A loop or a delay declares an animation, of which more frames may be missing.
    bool isCut;
} tern_gif_blocks;
tern_gif_blocks tern_gif_walk(const uint8_t *bytes, size_t count, uint32_t frameLimit);

/// GIF: the blocks are walked at opening, the frames composed in order.
typedef struct tern_gif tern_gif;
tern_gif *tern_gif_open(
    const uint8_t *bytes, size_t count, uint32_t frameLimit, tern_codec_info *info, int *result, char *error);
/// Writes the next frame as it shows, straight alpha; its delay in milliseconds as stored.
tern_codec_result tern_gif_next(tern_gif *gif, tern_canvas canvas, uint32_t *milliseconds, char *error);
tern_codec_result tern_gif_rewind(tern_gif *gif, char *error);
void tern_gif_close(tern_gif *gif);

/// What keeps AVIF from being decoded here; NULL if nothing does.
const char *tern_avif_obstacle(void);
/// What keeps the library of a file's name from being used, into 160 characters; empty if nothing does.
void tern_avif_look(const char *name, char *obstacle);
/// AVIF, still or a sequence, by the libavif that is found at run time; UNSUPPORTED without one.
typedef struct tern_avif tern_avif;
tern_avif *tern_avif_open(
    const uint8_t *bytes, size_t count, uint32_t pixelLimit, uint32_t frameLimit, tern_codec_info *info, int *result,
    char *error);
const uint8_t *tern_avif_profile(const tern_avif *avif, size_t *count, int *channels);
/// Writes the next frame, straight alpha, in one go; its time as the file has it.
tern_codec_result tern_avif_next(tern_avif *avif, tern_canvas canvas, uint64_t *microseconds, char *error);
tern_codec_result tern_avif_rewind(tern_avif *avif, char *error);
void tern_avif_close(tern_avif *avif);

/// A decoder that takes a file's bytes as they come. It copies them, keeps what is not decoded yet, and never goes back.
typedef struct tern_feed tern_feed;
typedef enum { TERN_FEED_JPEG, TERN_FEED_PNG, TERN_FEED_WEBP, TERN_FEED_GIF } tern_feed_kind;
typedef struct {
    uint64_t pixels;
    uint32_t frames;
    int scans;
    /// The memory in bytes that a library may take besides the canvas. Checked before the library takes any.
    uint64_t memory;
} tern_feed_limits;
/// How far it has come: the size that it gives, scans or passes that are complete, rows from the top that are final,
/// bytes that it has copied in memory.
typedef struct {
    uint32_t width, height;
    int passes;
    uint32_t rows;
    uint64_t copied;
    /// Whether the picture comes in several scans or passes.
    bool isInterlaced;
    /// Whether it only gathers bytes, for a decoder that wants them whole.
    bool isGathering;
    /// Whether more than one frame is known to come, whatever this decoder makes of it.
    bool isAnimation;
    /// A Boolean value that indicates whether the library has warned about the bytes. The decoder of whole files may
    /// then produce a different result.
    bool isDoubtful;
} tern_feed_state;
tern_feed *tern_feed_open(tern_feed_kind kind, tern_feed_limits limits);
tern_codec_result tern_feed_append(tern_feed *feed, const uint8_t *bytes, size_t count, char *error);
/// Says that no more bytes come: from then on nothing is STARVED.
void tern_feed_end(tern_feed *feed);
/// Called after HEADER in place of `tern_feed_start`. From now on the bytes are only gathered, for a decoder of whole
/// files.
void tern_feed_gather(tern_feed *feed);
/// Decodes a stretch of what is there: MORE, STARVED, HEADER once, BOUNDARY, or OK when the picture is complete. After
/// an error it is not to be called again.
tern_codec_result tern_feed_step(tern_feed *feed, char *error);
const tern_codec_info *tern_feed_info(const tern_feed *feed);
/// After HEADER: the ICC profile, good until the next call; NULL if there is none or it is not whole.
const uint8_t *tern_feed_profile(tern_feed *feed, size_t *count, int *channels);
/// As `tern_jpeg_ink`, before `tern_feed_start`.
void tern_feed_ink(tern_feed *feed, const tern_icc *color);
/// After HEADER: the least size wanted, as of `tern_jpeg_start`; for WebP exactly the size to scale to.
tern_codec_result tern_feed_start(tern_feed *feed, uint32_t leastWidth, uint32_t leastHeight, char *error);
tern_feed_state tern_feed_progress(const tern_feed *feed);
/// Writes the picture as known now, straight RGBA, in groups of rows; MORE until the last. Only at a boundary, at the
/// end, or of a picture that is not interlaced.
tern_codec_result tern_feed_render(tern_feed *feed, tern_canvas canvas, uint32_t rows, char *error);
/// As `tern_jpeg_verdict`.
tern_codec_result tern_feed_verdict(const tern_feed *feed, char *error);
/// All bytes so far, of a feed that is gathering.
const uint8_t *tern_feed_bytes(const tern_feed *feed, size_t *count);
void tern_feed_close(tern_feed *feed);

/// The orientation in EXIF's TIFF structure, 1 if it says none (CIPA DC-008, tag 0x0112).
int tern_exif_orientation(const uint8_t *bytes, size_t count);
/// Writes the picture as it is to be shown; orientations 5 to 8 swap width and height.
void tern_orient(
    const uint8_t *source, size_t sourceStride, uint32_t width, uint32_t height, int orientation, uint8_t *target,
    size_t targetStride);
/// Each colour becomes round(c·a/255), in place.
void tern_premultiply(uint8_t *pixels, size_t stride, uint32_t width, uint32_t height);
/// The inverse, rounded; a pixel without alpha becomes 0.
void tern_unpremultiply(const uint8_t *source, uint8_t *target, size_t pixels);

/// Returns the bytes that a resize takes besides source and target, including the rows that it keeps if they come one
/// by one.
uint64_t tern_resize_memory(tern_extent source, uint32_t targetWidth, uint32_t targetHeight, bool inRows);
/// Lanczos3 over premultiplied RGBA8, in slices of target rows; NULL when memory is short.
tern_resize *tern_resize_open(tern_extent source, uint32_t targetWidth, uint32_t targetHeight);
/// Resizes rows. Returns false and writes nothing if the sizes differ from those that the kernel was made for.
bool tern_resize_rows(
    tern_resize *resize, tern_picture source, tern_canvas target, uint32_t firstRow, uint32_t rows);
/// Returns whether the kernel resizes pictures of this size to the target.
bool tern_resize_fits(const tern_resize *resize, uint32_t width, uint32_t height, tern_canvas target, char *error);
/// The same of rows that come one by one, of which it keeps no more than a target row is made of: where the next one is
/// to be written, NULL when memory is short; then that it is there, and the target rows that can be made of it are.
uint8_t *tern_resize_place(tern_resize *resize);
void tern_resize_take(tern_resize *resize, tern_canvas target);
/// Takes rows without colour and alpha for those that are still to come.
void tern_resize_finish(tern_resize *resize, tern_canvas target);
void tern_resize_close(tern_resize *resize);

/// Encoders take straight RGBA and return bytes to be freed with `tern_codec_free`, or NULL.
uint8_t *tern_jpeg_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int quality, bool progressive,
    size_t *count, char *error);
uint8_t *tern_png_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int level, size_t *count, char *error);
uint8_t *tern_webp_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, float quality, bool lossless,
    size_t *count, char *error);
void tern_codec_free(void *bytes);

/// Returns whether a canvas has the size of the picture to be written; sets the error text if not.
bool tern_canvas_fits(tern_canvas canvas, uint32_t width, uint32_t height, char *error);

#endif
