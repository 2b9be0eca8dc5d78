// Writes ICC profiles of primaries and one curve.
#ifndef TERN_PROFILE_H
#define TERN_PROFILE_H

#include <stddef.h>
#include <stdint.h>

/// Writes a curve: the power g, a, b, c and d of (a·x + b)^g from d on, and c·x below it. Returns its size.
size_t tern_profile_curve(uint8_t at[32], const double numbers[5]);
/// Returns a profile. `colorants` are the XYZ (D50) of the primaries, by column, and `adapted` is the adaptation from the
/// white to D50; the curve has the form of a tag. Free it with `free`. Returns NULL when memory is short or the curve is too long.
uint8_t *tern_profile_write(
    const char *name, const double colorants[3][3], const double adapted[3][3], const uint8_t *curve, size_t curveSize,
    size_t *count);

#endif
