// Image codecs and the resize kernel as a C API of plain functions. Every jump of libjpeg and libpng starts and ends
// within one call, and no call runs a callback of the caller. Only one thread at a time uses a handle.
#ifndef CTERNCODECS_H
#define CTERNCODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CTernEffects.h"

/// The result of a call.
typedef enum {
    TERN_CODEC_OK = 0,
    /// The call is incomplete: check for cancellation, then call again.
    TERN_CODEC_MORE = 1,
    /// Results of an incremental decoder: it needs more bytes; the header is known; a scan or pass is complete, and
    /// more follow.
    TERN_CODEC_STARVED = 2,
    TERN_CODEC_HEADER = 3,
    TERN_CODEC_BOUNDARY = 4,
    TERN_CODEC_TRUNCATED = -1,
    TERN_CODEC_CORRUPT = -2,
    TERN_CODEC_UNSUPPORTED = -3,
    TERN_CODEC_MEMORY = -4,
    TERN_CODEC_SCANS = -5,
    /// The limit on pixels, with the same value. A library would allocate memory before any other check.
    TERN_CODEC_LIMIT = -5,
} tern_codec_result;

/// Colours that a file states by numbers instead of a profile.
typedef struct {
    /// The primaries and the transfer in the numbers of ITU-T H.273; 2 for those that are not stated.
    uint16_t primaries, transfer;
    /// In place of a transfer, the power of a value that is its light; 0 if there is none.
    double power;
    /// In place of primaries, x and y of white, red, green and blue; 0 if there are none.
    double points[8];
    /// The brightest light of a PQ picture in cd/m²; 0 if it is not stated.
    double peak;
} tern_color_numbers;

/// The content of a file's header. Sizes are in pixels as stored, before orientation.
typedef struct {
    uint32_t width, height;
    /// EXIF orientation, 1 to 8.
    int orientation;
    bool hasAlpha, hasProfile;
    /// A Boolean value that indicates whether the file states its colours by numbers, and has no profile; the numbers.
    bool hasColor;
    tern_color_numbers color;
    /// A Boolean value that indicates whether the samples are CMYK or YCCK, and one that indicates whether a JPEG has
    /// several scans.
    bool isInk, hasScans;
    /// The number of frames of an animation, 1 for a still image; the number of times that it plays, 0 for endless.
    uint32_t frameCount, loopCount;
    /// The maximum number of bytes that the decoder takes besides its canvas, estimated from the header.
    uint64_t memory;
    /// A Boolean value that indicates whether the format declares an animation, regardless of the number of frames.
    bool isAnimation;
    /// A Boolean value that indicates whether the bytes end between two frames, where the decoder reports no error.
    bool isCut;
    /// A Boolean value that indicates whether the decoder writes samples of 16 bits, eight bytes a pixel.
    bool isDeep;
} tern_codec_info;

/// The kinds of samples of a file's pixels, for its colour profile. An ink of 255 means no ink.
enum { TERN_CHANNELS_GREY = 1, TERN_CHANNELS_RGB = 3, TERN_CHANNELS_INK = 4 };

/// The samples of a picture: bytes, words of 16 bits, or half floats (IEEE 754), of which 1 is the greatest level.
typedef enum { TERN_SAMPLES_BYTES, TERN_SAMPLES_WORDS, TERN_SAMPLES_HALVES } tern_samples;

/// The colours and the samples that a conversion is for.
typedef struct {
    /// A Boolean value that indicates whether pixels are converted to Display P3, which has the curve of sRGB, instead of
    /// sRGB.
    bool isP3;
    /// A Boolean value that indicates whether samples of more than 8 bits are converted, too.
    bool isFine;
} tern_color_target;

/// A conversion of pixels to sRGB or Display P3 by an ICC profile. Tern converts profiles of primaries and curves itself,
/// and uses lcms2, which is found at run time, for others.
typedef struct tern_icc tern_icc;
/// Opens a conversion. Returns NULL if the profile is damaged or does not fit the samples, or if it needs lcms2, which
/// is missing. Returns NULL and sets `plain` if the profile is that of the target.
tern_icc *tern_icc_open(
    const uint8_t *profile, size_t count, int channels, tern_color_target target, bool *plain);
/// Returns whether bytes are a profile of red, green and blue whose header states its own size.
bool tern_icc_describes_colors(const uint8_t *profile, size_t count);
/// Returns a profile of red, green and blue with the curve of a grey profile, to be freed with `tern_codec_free`. Returns
/// NULL for a profile of tables.
uint8_t *tern_icc_from_grey(const uint8_t *profile, size_t count, size_t *made);
/// Opens a conversion of colours that a file states by numbers. Light brighter than the white of sRGB, as in a PQ or HLG
/// picture, is mapped below it. Returns NULL if a number is not supported. Returns NULL and sets `plain` if the
/// colours are those of the target.
tern_icc *tern_color_open(const tern_color_numbers *color, tern_color_target target, bool *plain);
/// Returns the ICC profile of such colours, to be freed with `tern_codec_free`. Returns NULL if a number is not supported,
/// and for PQ and HLG, which a profile of curves does not describe.
uint8_t *tern_color_profile(const tern_color_numbers *color, size_t *count);
/// Converts straight RGBA in place. Alpha does not change.
void tern_icc_convert(const tern_icc *icc, uint8_t *pixels, size_t stride, uint32_t width, uint32_t rows);
/// Converts words or halves to straight RGBA of 8 bits. The conversion was opened for fine samples; NULL only narrows
/// them.
void tern_icc_convert_deep(
    const tern_icc *icc, const uint8_t *source, tern_samples samples, bool isPremultiplied, uint8_t *target,
    size_t pixels);
/// Converts a row of pixels with four inks each to opaque RGBA.
void tern_icc_ink(const tern_icc *icc, const uint8_t *ink, uint8_t *pixels, uint32_t width);
void tern_icc_close(tern_icc *icc);
/// Returns whether lcms2 is available.
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

/// The pictures whose samples a decoder writes with 16 bits, if it can: none, those of PQ and HLG that have more than 8
/// bits, or all.
typedef enum { TERN_DEEP_NONE, TERN_DEEP_TONED, TERN_DEEP_ALL } tern_deep;
/// The colours that a decoder makes which converts by itself (JPEG XL): sRGB, Display P3, or those of the file.
typedef enum { TERN_COLORS_SRGB, TERN_COLORS_P3, TERN_COLORS_STORED } tern_colors;

/// The limits of a decoder, which it checks before its library takes memory, and the form of the pixels that it writes.
typedef struct {
    uint64_t pixels;
    uint32_t frames;
    int scans;
    /// The memory in bytes that a library may take besides the canvas. Checked before the library takes any.
    uint64_t memory;
    tern_deep deep;
    tern_colors colors;
} tern_feed_limits;

// Each decoder borrows its bytes, which must outlive the handle. `error` points to 160 characters or more.
typedef struct tern_jpeg tern_jpeg;
tern_jpeg *tern_jpeg_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
/// Returns the file's ICC profile, or NULL if it is incomplete. The bytes belong to the handle, as for each function of
/// this kind.
const uint8_t *tern_jpeg_profile(tern_jpeg *jpeg, size_t *count, int *channels);
/// Converts inks by a profile, which must outlive the handle, instead of mixing them. Call it before the first row.
void tern_jpeg_ink(tern_jpeg *jpeg, const tern_icc *color);
/// Returns the picture at the smallest DCT scale (1/8, 1/4, 1/2 or 1) that is at least as large as the size.
tern_extent tern_jpeg_scaled(uint32_t width, uint32_t height, uint32_t leastWidth, uint32_t leastHeight);
/// Starts with the scale that `tern_jpeg_scaled` finds.
tern_codec_result tern_jpeg_start(
    tern_jpeg *jpeg, uint32_t leastWidth, uint32_t leastHeight, int scanLimit, char *error);
/// Reads some rows of the coefficients of a progressive image. Returns MORE until all are read.
tern_codec_result tern_jpeg_prepare(tern_jpeg *jpeg, char *error);
/// Writes up to `rows` rows of RGBA at the next row of the whole picture's canvas. Returns MORE until the last row.
tern_codec_result tern_jpeg_rows(tern_jpeg *jpeg, tern_canvas canvas, uint32_t rows, char *error);
/// Does the same as `tern_jpeg_rows` and resizes the rows. The canvas has the target's size.
tern_codec_result tern_jpeg_resized(
    tern_jpeg *jpeg, tern_resize *resize, tern_canvas canvas, uint32_t rows, char *error);
/// Returns TRUNCATED or CORRUPT if libjpeg had to invent pixels, and OK otherwise, also if only the end marker is missing.
tern_codec_result tern_jpeg_verdict(const tern_jpeg *jpeg, char *error);
void tern_jpeg_close(tern_jpeg *jpeg);

/// Walks over the markers of a file of the size, for a decoder that does not count scans. Returns SCANS in the same
/// cases as `tern_jpeg_start`.
tern_codec_result tern_jpeg_survey(
    const uint8_t *bytes, size_t count, uint32_t width, uint32_t height, int scanLimit, char *error);
/// Returns whether the picture's end marker is present. The end markers of pictures within the headers do not count.
bool tern_jpeg_ends(const uint8_t *bytes, size_t count);

/// Returns whether a transfer of H.273 is one of light beyond the white of sRGB: PQ or HLG.
static inline bool tern_is_toned(unsigned transfer) { return transfer == 16 || transfer == 18; }
/// Returns whether a decoder writes samples of 16 bits for a picture of a depth, whose size and colours are known. For
/// pixels of 8 bits, they are converted before they lose bits, if the memory for both fits into a half of the limit. PQ
/// and HLG need them always.
static inline bool tern_is_deep(tern_feed_limits limits, unsigned depth, const tern_codec_info *info) {
    if (limits.deep == TERN_DEEP_ALL) return true;
    if (limits.deep == TERN_DEEP_NONE || depth <= 8) return false;
    if (info->hasColor && tern_is_toned(info->color.transfer)) return true;
    const tern_color_numbers *color = &info->color;
    const bool isSRGB = info->hasColor && color->power == 0 && !(color->points[7] > 0)
        && (color->primaries == 1 || color->primaries == 2) && (color->transfer == 13 || color->transfer == 2);
    const bool isConverted = info->hasProfile || (info->hasColor && !isSRGB);
    return isConverted && (uint64_t)info->width * info->height <= limits.memory / 24;
}

/// The gain map of a JPEG (Adobe Gain Map 1.0).
typedef struct {
    /// The place of the map's own JPEG in the file.
    size_t at, count;
    /// The gains of the levels 0 and 255 in stops, for red, green and blue, and the exponent between them.
    double least[3], most[3], gamma[3];
    /// The light that is added before the gain, and taken off after it.
    double baseOffset[3], offset[3];
    /// The headroom in stops up to which no gain is applied, and from which all of it is.
    double leastCapacity, mostCapacity;
} tern_gain_map;
/// Finds the gain map of a whole file. Returns false if there is none, or it is damaged.
bool tern_gain_map_find(const uint8_t *bytes, size_t count, tern_gain_map *map);
/// The crop of a picture: the pixels that are cut off at the left and the top, and the scaled size before, which the gain
/// map covers.
typedef struct {
    uint32_t left, top, width, height;
} tern_gain_place;
/// Writes rows of linear light as half floats with an alpha of 1: 1 is white. The base is opaque and has the curve of sRGB.
/// A display shows light up to the headroom, in multiples of white.
void tern_gain_map_apply(
    const tern_gain_map *map, tern_picture base, tern_picture gains, tern_gain_place place, double headroom,
    uint8_t *target, uint32_t firstRow, uint32_t rows);

typedef struct tern_png tern_png;
/// Opens a file and reads its header. Of the limits, those on pixels and memory count.
tern_png *tern_png_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_png_profile(tern_png *png, size_t *count, int *channels);
/// Returns the reason why libdeflate cannot be used here, or NULL if it can. zlib takes its place.
const char *tern_deflate_obstacle(void);
/// Returns the bytes of a canvas of RGBA and of the room behind it: decompressed rows of up to 8 bits a sample are stored
/// at its end, and converted in place.
uint64_t tern_png_room(uint32_t width, uint32_t height);
/// Returns the memory in bytes that `tern_png_inflate` takes besides the room; UINT64_MAX if it cannot be used for the
/// file.
uint64_t tern_png_inflate_memory(const tern_png *png, size_t room);
/// Decompresses the data of a sound file at once, before the first row, which takes less time than row by row: 8 ms a
/// megapixel, without an interruption. The rows are the same. `place` is NULL, or the start of the canvas of all rows,
/// and has `room` bytes. Returns false if the file is not sound, which its rows then report; the canvas is cleared then.
bool tern_png_inflate(tern_png *png, uint8_t *place, size_t room);
/// Does the same as `tern_jpeg_rows` with straight alpha. An interlaced picture takes seven passes.
tern_codec_result tern_png_rows(tern_png *png, tern_canvas canvas, uint32_t rows, char *error);
bool tern_png_interlaced(const tern_png *png);
/// Does the same as `tern_jpeg_resized`, premultiplied if the picture has alpha. Not for interlaced pictures.
tern_codec_result tern_png_resized(
    tern_png *png, tern_resize *resize, tern_canvas canvas, uint32_t rows, char *error);
void tern_png_close(tern_png *png);

/// Returns 0 for a still PNG, 1 for an animation whose first frame is the still picture, and 2 for an animation that
/// does not contain the still picture.
int tern_png_animation(const uint8_t *bytes, size_t count);
/// A decoder of animated PNG. Opening it walks over the chunks. It composes the frames in order.
typedef struct tern_apng tern_apng;
tern_apng *tern_apng_open(
    const uint8_t *bytes, size_t count, uint32_t frameLimit, tern_codec_info *info, int *result, char *error);
/// Decodes up to `rows` rows of the next frame. Returns MORE until the frame is written as it is shown, with straight
/// alpha. The frame's time is that in the file.
tern_codec_result tern_apng_next(
    tern_apng *apng, tern_canvas canvas, uint32_t rows, uint64_t *microseconds, char *error);
void tern_apng_rewind(tern_apng *apng);
void tern_apng_close(tern_apng *apng);

/// A decoder of Windows and OS/2 bitmaps: 1, 2, 4, 8, 16, 24 and 32 bits a pixel, masks, run lengths, and either order
/// of rows.
typedef struct tern_bmp tern_bmp;
tern_bmp *tern_bmp_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_bmp_profile(const tern_bmp *bmp, size_t *count, int *channels);
tern_codec_result tern_bmp_rows(tern_bmp *bmp, tern_canvas canvas, uint32_t rows, char *error);
/// Returns whether the file has the end of its last row, with its padding, or of its stream of run lengths. Call it after
/// the last row.
bool tern_bmp_has_end(const tern_bmp *bmp);
void tern_bmp_close(tern_bmp *bmp);

/// A decoder of the Quite OK Image format.
typedef struct tern_qoi tern_qoi;
tern_qoi *tern_qoi_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
tern_codec_result tern_qoi_rows(tern_qoi *qoi, tern_canvas canvas, uint32_t rows, char *error);
/// Returns whether the file has the marker of its end. Call it after the last row.
bool tern_qoi_has_end(const tern_qoi *qoi);
void tern_qoi_close(tern_qoi *qoi);

/// A decoder of Windows icons and cursors, whose entries are bitmaps or PNG files. Opening it selects the largest entry.
typedef struct tern_ico tern_ico;
tern_ico *tern_ico_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
/// Selects the smallest entry of at least the size, or the largest if there is none. Call it before the first row.
tern_codec_result tern_ico_choose(
    tern_ico *ico, uint32_t leastWidth, uint32_t leastHeight, tern_codec_info *info, char *error);
/// Returns the index of the selected entry, which starts at 0.
uint32_t tern_ico_entry(const tern_ico *ico);
tern_codec_result tern_ico_rows(tern_ico *ico, tern_canvas canvas, uint32_t rows, char *error);
void tern_ico_close(tern_ico *ico);

typedef struct tern_webp tern_webp;
tern_webp *tern_webp_open(const uint8_t *bytes, size_t count, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_webp_profile(const tern_webp *webp, size_t *count, int *channels);
/// Starts writing straight RGBA of the canvas's size, which is never larger than the picture's own size.
tern_codec_result tern_webp_start(tern_webp *webp, tern_canvas canvas, char *error);
/// Decodes another part of the bytes. Returns MORE until the last one.
tern_codec_result tern_webp_step(tern_webp *webp, char *error);
/// Returns whether the picture must be decoded again at its own size, because scaling it has lost its colours.
bool tern_webp_has_lost_colors(const tern_webp *webp);
void tern_webp_close(tern_webp *webp);

/// A decoder of animated WebP. It composes the frames in order, with straight alpha.
typedef struct tern_webp_frames tern_webp_frames;
tern_webp_frames *tern_webp_frames_open(const uint8_t *bytes, size_t count, int *result, char *error);
/// Writes the next frame and its duration in milliseconds.
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
    /// The size of the canvas: that of the screen, enlarged to the first frame.
    uint32_t width, height;
    /// A Boolean value that indicates whether a part of the picture may be missing. It is not, if a still picture lacks
    /// only the trailer. A loop or a delay declares an animation, of which more frames may be missing.
    bool isCut;
    /// A Boolean value that indicates whether the file has its trailer, or any other byte in its place.
    bool hasEnd;
} tern_gif_blocks;
/// Enlarges a canvas to a first frame that does not fit into the screen, given by the nine bytes of its descriptor, as in
/// browsers. Later frames are cut off.
void tern_gif_grow(uint32_t *width, uint32_t *height, const uint8_t *descriptor);
tern_gif_blocks tern_gif_walk(const uint8_t *bytes, size_t count, uint32_t frameLimit);

/// A decoder of GIF. Opening it walks over the blocks. It composes the frames in order.
typedef struct tern_gif tern_gif;
tern_gif *tern_gif_open(
    const uint8_t *bytes, size_t count, uint32_t frameLimit, tern_codec_info *info, int *result, char *error);
/// Decodes up to `rows` rows of the next frame. Returns MORE until the frame is written as it is shown, with straight
/// alpha, and its delay in milliseconds as stored.
tern_codec_result tern_gif_next(
    tern_gif *gif, tern_canvas canvas, uint32_t rows, uint32_t *milliseconds, char *error);
tern_codec_result tern_gif_rewind(tern_gif *gif, char *error);
void tern_gif_close(tern_gif *gif);

/// Returns the reason why AVIF cannot be decoded here, or NULL if it can.
const char *tern_avif_obstacle(void);
/// Writes the reason why the library with a file name cannot be used, up to 160 characters. Writes an empty text if the
/// library can be used.
void tern_avif_look(const char *name, char *obstacle);
/// A decoder of AVIF, still images and sequences. It uses the libavif that is found at run time. Opening it results in
/// UNSUPPORTED without one.
typedef struct tern_avif tern_avif;
tern_avif *tern_avif_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_avif_profile(const tern_avif *avif, size_t *count, int *channels);
/// Writes the whole next frame, with straight alpha, and its time as stored.
tern_codec_result tern_avif_next(tern_avif *avif, tern_canvas canvas, uint64_t *microseconds, char *error);
tern_codec_result tern_avif_rewind(tern_avif *avif, char *error);
void tern_avif_close(tern_avif *avif);

/// Returns the reason why TIFF cannot be decoded here, or NULL if it can.
const char *tern_tiff_obstacle(void);
/// A decoder of TIFF, of the first picture of a file.
typedef struct tern_tiff tern_tiff;
/// Opens a file and reads its header. Of the limits, those on pixels and memory count.
tern_tiff *tern_tiff_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_tiff_profile(const tern_tiff *tiff, size_t *count, int *channels);
/// Writes at least `rows` rows with straight alpha, up to the end of a strip or a row of tiles.
tern_codec_result tern_tiff_rows(tern_tiff *tiff, tern_canvas canvas, uint32_t rows, char *error);
/// Returns whether the file has the link behind its directory.
bool tern_tiff_has_end(const tern_tiff *tiff);
void tern_tiff_close(tern_tiff *tiff);

/// Returns the reason why HEIC cannot be decoded here, or NULL if it can.
const char *tern_heif_obstacle(void);
/// A decoder of HEIC, of the primary image of a file.
typedef struct tern_heif tern_heif;
/// Opens a file and reads its header. The size is that of the picture as it is shown. Of the limits, those on pixels and
/// memory count.
tern_heif *tern_heif_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_heif_profile(const tern_heif *heif, size_t *count, int *channels);
/// Writes the whole picture with straight alpha. libheif cannot be interrupted.
tern_codec_result tern_heif_decode(tern_heif *heif, tern_canvas canvas, char *error);
void tern_heif_close(tern_heif *heif);

/// Returns the reason why JPEG XL cannot be decoded here, or NULL if it can.
const char *tern_jxl_obstacle(void);
/// A decoder of JPEG XL, still pictures and animations, bare or in boxes. It uses the libjxl that is found at run time.
typedef struct tern_jxl tern_jxl;
/// Opens a file and reads its header and those of its frames. The limits are those on pixels, frames, memory, and scans,
/// which are layers of the size of the picture for each frame that is shown.
tern_jxl *tern_jxl_open(
    const uint8_t *bytes, size_t count, tern_feed_limits limits, tern_codec_info *info, int *result, char *error);
const uint8_t *tern_jxl_profile(const tern_jxl *jxl, size_t *count, int *channels);
/// Decodes a piece of the next frame. Returns MORE until the frame is whole, in straight RGBA, and then its time as
/// stored. Each call for a frame has the same canvas.
tern_codec_result tern_jxl_next(tern_jxl *jxl, tern_canvas canvas, uint64_t *microseconds, char *error);
tern_codec_result tern_jxl_rewind(tern_jxl *jxl, char *error);
/// Returns whether the frames reach their end, as far as it has decoded them.
bool tern_jxl_has_end(const tern_jxl *jxl);
/// Returns whether the canvas has a picture after TRUNCATED: all of it, in less detail where bytes are missing.
bool tern_jxl_is_shown(const tern_jxl *jxl);
void tern_jxl_close(tern_jxl *jxl);

/// A decoder that takes a file's bytes as they arrive. It copies them, keeps the bytes that are not decoded yet, and
/// never goes back.
typedef struct tern_feed tern_feed;
typedef enum { TERN_FEED_JPEG, TERN_FEED_PNG, TERN_FEED_WEBP, TERN_FEED_GIF, TERN_FEED_JXL } tern_feed_kind;
/// The progress of a decoder: the size of its picture, the number of complete scans or passes, the number of final rows
/// from the top, and the number of bytes that it has copied in memory.
typedef struct {
    uint32_t width, height;
    int passes;
    uint32_t rows;
    uint64_t copied;
    /// A Boolean value that indicates whether the picture has several scans or passes.
    bool isInterlaced;
    /// A Boolean value that indicates whether the decoder only gathers bytes, for a decoder of whole files.
    bool isGathering;
    /// A Boolean value that indicates whether the file has more than one frame, even if this decoder shows only one.
    bool isAnimation;
    /// A Boolean value that indicates whether the bytes so far reach the end that the file's structure states.
    bool hasEnd;
    /// A Boolean value that indicates whether the library has warned about the bytes. The decoder of whole files may
    /// then produce a different result.
    bool isDoubtful;
} tern_feed_state;
tern_feed *tern_feed_open(tern_feed_kind kind, tern_feed_limits limits);
tern_codec_result tern_feed_append(tern_feed *feed, const uint8_t *bytes, size_t count, char *error);
/// Ends the file. From then on, no result is STARVED.
void tern_feed_end(tern_feed *feed);
/// Called after HEADER in place of `tern_feed_start`. From now on the bytes are only gathered, for a decoder of whole
/// files.
void tern_feed_gather(tern_feed *feed);
/// Gathers a PNG up to its end chunk. The result is then OK, also before the file ends.
void tern_feed_await(tern_feed *feed);
/// Decodes a part of the available bytes. Returns MORE, STARVED, HEADER once, BOUNDARY, or OK when the picture is
/// complete. Do not call it again after an error.
tern_codec_result tern_feed_step(tern_feed *feed, char *error);
const tern_codec_info *tern_feed_info(const tern_feed *feed);
/// Returns the ICC profile after HEADER. It is valid until the next call. Returns NULL if there is no profile or it is
/// incomplete.
const uint8_t *tern_feed_profile(tern_feed *feed, size_t *count, int *channels);
/// Does the same as `tern_jpeg_ink`. Call it before `tern_feed_start`.
void tern_feed_ink(tern_feed *feed, const tern_icc *color);
/// Starts the picture after HEADER. The size is the least one wanted, as for `tern_jpeg_start`. For WebP, it is the
/// exact size to scale to.
tern_codec_result tern_feed_start(tern_feed *feed, uint32_t leastWidth, uint32_t leastHeight, char *error);
tern_feed_state tern_feed_progress(const tern_feed *feed);
/// Writes the current state of the picture as straight RGBA, in groups of rows. Returns MORE until the last one. Call
/// it only at a boundary, at the end, or for a picture that is not interlaced.
tern_codec_result tern_feed_render(tern_feed *feed, tern_canvas canvas, uint32_t rows, char *error);
/// Does the same as `tern_jpeg_verdict`.
tern_codec_result tern_feed_verdict(const tern_feed *feed, char *error);
/// Returns all bytes so far, for a feed that is gathering.
const uint8_t *tern_feed_bytes(const tern_feed *feed, size_t *count);
void tern_feed_close(tern_feed *feed);

/// Returns the orientation in EXIF's TIFF structure, or 1 if it states none (CIPA DC-008, tag 0x0112).
int tern_exif_orientation(const uint8_t *bytes, size_t count);
/// Writes the picture in the orientation to be shown. Orientations 5 to 8 swap width and height. A pixel has four or eight
/// bytes.
void tern_orient(
    const uint8_t *source, size_t sourceStride, size_t pixel, uint32_t width, uint32_t height, int orientation,
    uint8_t *target, size_t targetStride);
/// Replaces each colour by round(c·a/255), in place.
void tern_premultiply(uint8_t *pixels, size_t stride, uint32_t width, uint32_t height);
/// Sets the alpha of each pixel to 255, in place. Returns whether any was different.
bool tern_make_opaque(uint8_t *pixels, size_t stride, uint32_t width, uint32_t height);
/// Does the inverse of `tern_premultiply`, rounded. A pixel without alpha becomes 0.
void tern_unpremultiply(const uint8_t *source, uint8_t *target, size_t pixels);

/// Returns the number of bytes of a pixel.
static inline size_t tern_pixel_bytes(tern_samples samples) { return samples == TERN_SAMPLES_BYTES ? 4 : 8; }
/// Converts samples of one kind to another: to the nearest level, from 0 to the greatest.
void tern_convert_samples(
    const uint8_t *source, tern_samples from, uint8_t *target, tern_samples to, size_t count);
/// Writes samples as numbers, of which 1 is the greatest level.
void tern_load_samples(const uint8_t *source, tern_samples samples, float *target, size_t count);
/// Does the same as `tern_premultiply` and `tern_unpremultiply` for words and halves, in place.
void tern_premultiply_deep(uint8_t *pixels, tern_samples samples, size_t count);
void tern_unpremultiply_deep(uint8_t *pixels, tern_samples samples, size_t count);
/// Returns whether every pixel is opaque. Reads pixels up to the first that is not.
bool tern_is_opaque(const uint8_t *pixels, tern_samples samples, size_t count);
/// A resizer in floating point of samples of any kind. It averages levels, or their light by the curve of sRGB.
typedef struct tern_fine_resize tern_fine_resize;
/// Returns the bytes that such a resize takes besides source and target.
uint64_t tern_fine_resize_memory(tern_extent source, uint32_t targetWidth, uint32_t targetHeight);
/// Creates a Lanczos3 kernel for premultiplied RGBA. Returns NULL when memory is short.
tern_fine_resize *tern_fine_resize_open(
    tern_extent source, uint32_t targetWidth, uint32_t targetHeight, tern_samples samples, bool inLight);
/// Resizes rows. Call it from the top down, because rows of the source are reused. Returns false and writes nothing if the sizes differ from those that the
/// kernel was made for.
bool tern_fine_resize_rows(
    tern_fine_resize *resize, tern_picture source, tern_canvas target, uint32_t firstRow, uint32_t rows);
void tern_fine_resize_close(tern_fine_resize *resize);

/// Returns the bytes that a resize takes besides source and target, including the rows that it keeps if they come one
/// by one.
uint64_t tern_resize_memory(tern_extent source, uint32_t targetWidth, uint32_t targetHeight, bool inRows);
/// Creates a Lanczos3 kernel for premultiplied RGBA8 that resizes slices of target rows. Returns NULL when memory is
/// short.
tern_resize *tern_resize_open(tern_extent source, uint32_t targetWidth, uint32_t targetHeight);
/// Resizes rows. Returns false and writes nothing if the sizes differ from those that the kernel was made for.
bool tern_resize_rows(
    tern_resize *resize, tern_picture source, tern_canvas target, uint32_t firstRow, uint32_t rows);
/// Returns whether the kernel resizes pictures of this size to the target.
bool tern_resize_fits(const tern_resize *resize, uint32_t width, uint32_t height, tern_canvas target, char *error);
/// Resize rows that arrive one by one, and keep only the rows that a target row is made of. `tern_resize_place` returns
/// the destination of the next row, or NULL when memory is short. `tern_resize_take` takes the row that was written
/// there, and makes the target rows that are then possible.
uint8_t *tern_resize_place(tern_resize *resize);
void tern_resize_take(tern_resize *resize, tern_canvas target);
/// Completes the target. The rows that are missing are taken as transparent.
void tern_resize_finish(tern_resize *resize, tern_canvas target);
void tern_resize_close(tern_resize *resize);

/// The colours of the pixels that an encoder takes, as it writes them; all zero for sRGB, of which it writes nothing.
typedef struct {
    const uint8_t *profile;
    size_t profileCount;
    /// The primaries and the transfer in the numbers of ITU-T H.273; 0 if they are not written. Only for PNG.
    uint8_t primaries, transfer;
} tern_stated_colors;

/// Encoders take straight RGBA and return bytes to be freed with `tern_codec_free`, or NULL.
uint8_t *tern_jpeg_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int quality, bool progressive,
    tern_stated_colors colors, size_t *count, char *error);
/// Returns the least number of channels that hold the pixels without loss: 1 for grey, 2 for grey with alpha, 3 for
/// colours, and 4 for colours with alpha. The samples have 8 or 16 bits.
int tern_png_channels(const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int bits);
/// The channels are those of `tern_png_channels`, or more: colours, if there is a profile of colours. The samples have 8
/// or 16 bits.
uint8_t *tern_png_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, int bits, int channels, int level,
    tern_stated_colors colors, size_t *count, char *error);
uint8_t *tern_webp_encode(
    const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, float quality, bool lossless,
    tern_stated_colors colors, size_t *count, char *error);
void tern_codec_free(void *bytes);

/// An encoder of GIF, which writes of each frame what has changed, in at most 256 colours. Pixels less than half opaque
/// are transparent.
typedef struct tern_gif_writer tern_gif_writer;
/// Starts a file that plays a number of times, 0 for endless. Returns NULL for a size that GIF does not have, with a text,
/// and when memory is short, without one.
tern_gif_writer *tern_gif_writer_open(uint32_t width, uint32_t height, uint32_t loops, char *error);
/// Adds a frame of the file's size in straight RGBA, with its time in hundredths of a second, at most 65535.
tern_codec_result tern_gif_writer_add(
    tern_gif_writer *writer, const uint8_t *pixels, size_t stride, uint32_t hundredths, char *error);
/// Ends the file after at least one frame. Returns bytes to be freed with `tern_codec_free`, or NULL.
uint8_t *tern_gif_writer_finish(tern_gif_writer *writer, size_t *count, char *error);
void tern_gif_writer_close(tern_gif_writer *writer);

/// Returns the reason why AVIF cannot be encoded here, or NULL if it can.
const char *tern_avif_writer_obstacle(void);
typedef struct {
    uint32_t width, height;
    /// The number of times that the sequence plays, 0 for endless. Written by libavif 1.0 and later.
    uint32_t loops;
    /// From 0 to 100.
    int quality;
    /// From 0 for the smallest file to 10 for the least time.
    int speed;
    bool isOpaque;
    /// A Boolean value that indicates whether the file is a still picture, with one frame.
    bool isStill;
} tern_avif_writer_settings;
/// An encoder of AVIF.
typedef struct tern_avif_writer tern_avif_writer;
/// Returns NULL without an encoder, with a text, and when memory is short, without one.
tern_avif_writer *tern_avif_writer_open(tern_avif_writer_settings settings, char *error);
/// Adds a frame of the file's size in straight RGBA, with its time. Encodes on the calling thread.
tern_codec_result tern_avif_writer_add(
    tern_avif_writer *writer, const uint8_t *pixels, size_t stride, uint32_t milliseconds, char *error);
/// Ends the file after at least one frame. Returns bytes to be freed with `tern_codec_free`, or NULL.
uint8_t *tern_avif_writer_finish(tern_avif_writer *writer, size_t *count, char *error);
void tern_avif_writer_close(tern_avif_writer *writer);

/// Returns the reason why animated WebP cannot be encoded here, or NULL if it can.
const char *tern_webp_writer_obstacle(void);
typedef struct {
    uint32_t width, height;
    /// The number of times that the animation plays, 0 for endless, at most 65535.
    uint32_t loops;
    /// From 0 to 100; for a file without loss the effort.
    float quality;
    bool isLossless;
} tern_webp_settings;
/// An encoder of animated WebP. One frame makes a still picture.
typedef struct tern_webp_writer tern_webp_writer;
/// Returns NULL without libwebpmux and for a size that WebP does not have, with a text, and when memory is short, without
/// one.
tern_webp_writer *tern_webp_writer_open(tern_webp_settings settings, char *error);
/// Adds a frame of the file's size in straight RGBA, with its time. Encodes on the calling thread.
tern_codec_result tern_webp_writer_add(
    tern_webp_writer *writer, const uint8_t *pixels, size_t stride, uint32_t milliseconds, char *error);
/// Ends the file after at least one frame. Returns bytes to be freed with `tern_codec_free`, or NULL.
uint8_t *tern_webp_writer_finish(tern_webp_writer *writer, size_t *count, char *error);
void tern_webp_writer_close(tern_webp_writer *writer);

/// Returns the reason why HEIC cannot be encoded here, or NULL if it can.
const char *tern_heif_writer_obstacle(void);
typedef struct {
    uint32_t width, height;
    /// From 0 to 100.
    int quality;
    /// From 0 for the smallest file to 10 for the least time.
    int speed;
    bool isOpaque;
} tern_heif_settings;
/// Encodes a HEIC file as the other encoders do, on the calling thread.
uint8_t *tern_heif_encode(
    const uint8_t *pixels, size_t stride, tern_heif_settings settings, size_t *count, char *error);

/// Returns the reason why JPEG XL cannot be encoded here, or NULL if it can.
const char *tern_jxl_writer_obstacle(void);
typedef struct {
    uint32_t width, height;
    /// The number of times that the animation plays, 0 for endless.
    uint32_t loops;
    /// From 0 to 100.
    float quality;
    /// From 0 for the smallest file to 10 for the least time.
    int speed;
    bool isLossless, isOpaque;
    /// A Boolean value that indicates whether the file is a still picture, with one frame.
    bool isStill;
} tern_jxl_settings;
/// An encoder of JPEG XL.
typedef struct tern_jxl_writer tern_jxl_writer;
/// Returns NULL without an encoder, with a text, and when memory is short, without one.
tern_jxl_writer *tern_jxl_writer_open(tern_jxl_settings settings, char *error);
/// Adds a frame of the file's size in straight RGBA, with its time. Encodes the frame before on the calling thread.
tern_codec_result tern_jxl_writer_add(
    tern_jxl_writer *writer, const uint8_t *pixels, size_t stride, uint32_t milliseconds, char *error);
/// Ends the file after at least one frame. Returns bytes to be freed with `tern_codec_free`, or NULL.
uint8_t *tern_jxl_writer_finish(tern_jxl_writer *writer, size_t *count, char *error);
void tern_jxl_writer_close(tern_jxl_writer *writer);

/// Asks the system for pages of 2 MiB for pixels of 4 MiB or more, before they are written: otherwise the first access to
/// each page of 4 KiB costs more than decoding its pixels. Only pages that lie wholly within the pixels; the system uses
/// small ones when memory is short.
void tern_prefer_large_pages(uint8_t *pixels, size_t count);

/// Returns whether a canvas has the size of the picture to be written; sets the error text if not.
bool tern_canvas_fits(tern_canvas canvas, uint32_t width, uint32_t height, char *error);

#include "CTernSVG.h"

#endif
