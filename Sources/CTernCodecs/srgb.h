// The curve of sRGB (IEC 61966-2-1), and its primaries beside those of Display P3.
#ifndef TERN_SRGB_H
#define TERN_SRGB_H

#include <math.h>

/// Returns the light of a level from 0 to 1. A level above 1 continues the curve.
static inline double tern_srgb_light(double level) {
    return level <= 0.04045 ? level / 12.92 : pow((level + 0.055) / 1.055, 2.4);
}

/// Returns the level of a light, the inverse of `tern_srgb_light`.
static inline double tern_srgb_level(double light) {
    return light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

/// The light of Display P3's primaries for that of sRGB's, under the same white.
static const float tern_srgb_to_p3[3][3] = {
    {0.8224621f, 0.1775379f, 0}, {0.0331941f, 0.9668059f, 0}, {0.0170826f, 0.0723974f, 0.9105200f}};

#endif
