// Writes ICC profiles of primaries and one curve.
#ifndef TERN_PROFILE_H
#define TERN_PROFILE_H

#include <stddef.h>
#include <stdint.h>

/// Writes a curve: the power g, a, b, c and d of (a·x + b)^g from d on, and c·x below it. Returns its size.
size_t tern_profile_curve(uint8_t at[32], const double numbers[5]);
/// Returns a profile of the light of each primary under D50, by column, the adaptation from its white to D50, and a curve
/// as a profile has it. Free it with `free`. Returns NULL when memory is short or the curve is too long.
uint8_t *tern_profile_write(
    const char *name, const double colorants[3][3], const double adapted[3][3], const uint8_t *curve, size_t curveSize,
    size_t *count);

#endif
