// The structure of a HEIF file, which is judged before libheif reads the file.
#ifndef TERN_HEIF_SURVEY_H
#define TERN_HEIF_SURVEY_H

#include "CTernCodecs.h"

typedef struct {
    /// The pixels of the largest picture, coded or put together.
    uint64_t largest;
    /// The numbers that the file states for the colours.
    tern_color_numbers color;
    /// The bytes to which libheif unpacks the file's items when it opens the file.
    uint64_t metadata;
    /// Boolean values that indicate whether the colours are grey, whether samples have more than 8 bits, whether more
    /// than one in four pixels has samples of colour, and whether pictures lie on each other.
    bool isGrey, isDeep, isFine, isOverlay, hasAlpha;
} tern_heif_survey;

/// Returns the most pixels of a coded picture, for those that are shown. A coded picture is filled up to whole blocks,
/// and a part of a grid is cut off at the edge.
static inline uint64_t tern_heif_most(uint64_t pixels) { return pixels * 2 + 65536; }

/// Walks over the boxes and over the NAL units of the pictures that make up the primary image. Returns LIMIT for
/// pictures of more pixels than the limit, TRUNCATED if bytes of the pictures are missing, and UNSUPPORTED for pictures
/// that are not coded as HEVC.
tern_codec_result tern_heif_walk(
    const uint8_t *bytes, size_t count, uint64_t pixelLimit, tern_heif_survey *survey, char *error);

/// The start of a sequence parameter set.
typedef struct {
    /// The size as coded, and that of the part which is shown.
    uint64_t width, height, shownWidth, shownHeight;
    /// The number of the set, and that of the coding tree blocks of a picture.
    uint32_t number;
    uint64_t blocks;
    unsigned chroma;
    bool isDeep;
} tern_heif_size;

/// The start of a picture parameter set: its number, that of its sequence, the bits that its slices have in reserve,
/// and whether a slice can depend on the one before.
typedef struct {
    uint32_t number, sequence;
    unsigned reserve;
    bool hasDependents;
} tern_heif_set;

/// The bytes of a NAL unit that are enough to find the size.
enum { TERN_HEIF_SEQUENCE = 256 };

/// Reads a sequence parameter set from its first bytes (ITU-T H.265, §7.3.2.2), behind the header of its NAL unit.
/// Returns whether it is sound so far.
bool tern_heif_sequence(const uint8_t *unit, size_t count, tern_heif_size *into);
/// Does the same for a picture parameter set (§7.3.2.3).
bool tern_heif_picture(const uint8_t *unit, size_t count, tern_heif_set *into);

/// Returns the set that the header of a slice of a picture without references names (§7.3.6), or UINT32_MAX.
uint32_t tern_heif_slice_set(const uint8_t *unit, size_t count);
/// Returns whether a slice is predicted from its own picture alone, or depends on the one before.
bool tern_heif_is_intra(const uint8_t *unit, size_t count, const tern_heif_set *set, uint64_t blocks);

#endif
