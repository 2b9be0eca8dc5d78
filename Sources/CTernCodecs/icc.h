// A conversion from the colours that a profile or the numbers of a file describe, to sRGB or Display P3.
#ifndef TERN_ICC_H
#define TERN_ICC_H

#include "CTernCodecs.h"

/// The number of steps of light from black to the white of sRGB. In the steepest part of sRGB's curve, a step is a fifth
/// of a level.
enum { TERN_LIGHT_STEPS = 16384 };
/// The number of steps of the tables for tone mapping.
enum { TERN_TONE_STEPS = 1024 };

/// The number of steps of the tables for samples of more than 8 bits, between which values are interpolated.
enum { TERN_FINE_STEPS = 4096 };

/// The tables of a conversion for samples of more than 8 bits.
typedef struct {
    // The transform of lcms2 from 16 bits to 8. The members below are used without it.
    void *transform;
    float lights[3][TERN_FINE_STEPS + 1];
    // PQ: the factor of tone mapping by the value of the brightest channel. HLG: the system gain by the root of the
    // luminance, and then the factor of tone mapping by the root of the light of the brightest channel.
    float peaks[TERN_FINE_STEPS + 1], luminances[TERN_FINE_STEPS + 1], brightest[TERN_FINE_STEPS + 1];
} tern_fine;

struct tern_icc {
    // The transform of lcms2. The members below are used without it.
    void *transform;
    // NULL if the conversion is for 8 bits only.
    tern_fine *fine;
    bool grey;
    // The light of each level of a channel, and the matrix to the linear light of the target, in steps.
    float lights[3][256], mix[3][3];
    // The colour of each level of a grey profile.
    uint8_t greys[256][3];
    // The factor of a pixel's light for the level of its brightest channel (PQ), or the factor of a pixel's light for its
    // luminance and then for the light of its brightest channel (HLG).
    enum { TERN_TONES_NONE, TERN_TONES_PQ, TERN_TONES_HLG } tones;
    float peaks[256], luminances[TERN_TONE_STEPS + 1], brightest[TERN_TONE_STEPS + 1];
};

/// Returns a conversion without tables, or NULL. Free it with `tern_icc_close`.
tern_icc *tern_icc_new(tern_color_target target);
/// Changes the matrix, which leads to sRGB, to one to Display P3 if that is the target.
void tern_icc_set_target(tern_icc *icc, tern_color_target target);
/// Returns whether the conversion is none: no grey and no pure colour moves by more than the rounding of a profile's
/// numbers.
bool tern_icc_is_plain(const tern_icc *icc);

#endif
