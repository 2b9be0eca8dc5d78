// A conversion of pixels to sRGB, which a profile or the numbers of a file describe.
#ifndef TERN_ICC_H
#define TERN_ICC_H

#include "CTernCodecs.h"

/// The number of steps of light from black to the white of sRGB. In the steepest part of sRGB's curve, a step is a fifth
/// of a level.
enum { TERN_LIGHT_STEPS = 16384 };
/// The number of steps of the tables for tone mapping.
enum { TERN_TONE_STEPS = 1024 };

struct tern_icc {
    // The transform of lcms2. The members below are used without it.
    void *transform;
    bool grey;
    // The light of each level of a channel, and the steps of each primary of sRGB for each channel's light.
    float lights[3][256], mix[3][3];
    // The colour of each level of a grey profile.
    uint8_t greys[256][3];
    // The factor of a pixel's light for the level of its brightest channel (PQ), or the factor of a pixel's light for its
    // luminance and then for the light of its brightest channel (HLG).
    enum { TERN_TONES_NONE, TERN_TONES_PQ, TERN_TONES_HLG } tones;
    float peaks[256], luminances[TERN_TONE_STEPS + 1], brightest[TERN_TONE_STEPS + 1];
};

/// Returns a conversion without tables, or NULL. Free it with `tern_icc_close`.
tern_icc *tern_icc_new(void);
/// Returns whether the conversion is none: no grey and no pure colour moves by more than the rounding of a profile's
/// numbers.
bool tern_icc_is_plain(const tern_icc *icc);

#endif
