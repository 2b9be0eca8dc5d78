// Conversions to sRGB or Display P3 of colours that a file states by numbers: those of ITU-T H.273 (AVIF, HEIC and PNG's cICP), or the
// curve and the primaries of a PNG's gAMA and cHRM. Light brighter than the white of sRGB is mapped below it.
#include "icc.h"
#include "profile.h"
#include "srgb.h"

#if defined(__linux__)
#include <math.h>
#include <string.h>

/// The chromaticities of red, green, blue and white.
typedef struct { double red[2], green[2], blue[2], white[2]; } primaries;

#define D65 {0.3127, 0.3290}
/// The primaries of H.273, table 2, that are in use.
static bool findPrimaries(unsigned number, primaries *found) {
    static const struct { unsigned number; primaries points; } known[] = {
        {1, {{0.640, 0.330}, {0.300, 0.600}, {0.150, 0.060}, D65}},
        {4, {{0.67, 0.33}, {0.21, 0.71}, {0.14, 0.08}, {0.310, 0.316}}},
        {5, {{0.64, 0.33}, {0.29, 0.60}, {0.15, 0.06}, D65}},
        {6, {{0.630, 0.340}, {0.310, 0.595}, {0.155, 0.070}, D65}},
        {7, {{0.630, 0.340}, {0.310, 0.595}, {0.155, 0.070}, D65}},
        {8, {{0.681, 0.319}, {0.243, 0.692}, {0.145, 0.049}, {0.310, 0.316}}},
        {9, {{0.708, 0.292}, {0.170, 0.797}, {0.131, 0.046}, D65}},
        {11, {{0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}, {0.314, 0.351}}},
        {12, {{0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}, D65}},
        {22, {{0.630, 0.340}, {0.295, 0.605}, {0.155, 0.077}, D65}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].number != (number == 2 ? 1 : number)) continue;
        *found = known[i].points;
        return true;
    }
    return false;
}

typedef struct { double at[3][3]; } matrix;

static matrix product(matrix a, matrix b) {
    matrix result = {{{0}}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) result.at[i][j] += a.at[i][k] * b.at[k][j];
    return result;
}

/// Returns false if there is no inverse.
static bool invert(matrix m, matrix *into) {
    double determinant = 0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            const int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            into->at[i][j] = m.at[a][c] * m.at[b][d] - m.at[a][d] * m.at[b][c];
        }
    }
    for (int i = 0; i < 3; i++) determinant += m.at[0][i] * into->at[i][0];
    if (!(fabs(determinant) > 1e-9)) return false;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) into->at[i][j] /= determinant;
    return true;
}

/// Computes the XYZ of each primary's light (SMPTE RP 177). Returns false for points that span no colours.
static bool toXYZ(primaries points, matrix *into) {
    const double *const xy[] = {points.red, points.green, points.blue, points.white};
    double columns[4][3];
    for (int i = 0; i < 4; i++) {
        if (!(xy[i][1] > 1e-4)) return false;
        columns[i][0] = xy[i][0] / xy[i][1];
        columns[i][1] = 1;
        columns[i][2] = (1 - xy[i][0] - xy[i][1]) / xy[i][1];
    }
    matrix each, inverse;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) each.at[i][j] = columns[j][i];
    if (!invert(each, &inverse)) return false;
    for (int j = 0; j < 3; j++) {
        double amount = 0;
        for (int k = 0; k < 3; k++) amount += inverse.at[j][k] * columns[3][k];
        if (!(amount > 0)) return false;
        for (int i = 0; i < 3; i++) each.at[i][j] *= amount;
    }
    *into = each;
    return true;
}

static const double d65[2] = D65, d50[2] = {0.34567, 0.35850};

/// Computes the adaptation of colours from one white to another by Bradford's method, as profiles do (ICC.1:2022,
/// annex E).
static bool adaptation(const double white[2], const double target[2], matrix *into) {
    static const matrix cone = {{{0.8951, 0.2664, -0.1614}, {-0.7502, 1.7135, 0.0367}, {0.0389, -0.0685, 1.0296}}};
    matrix inverse, scale = {{{0}}};
    for (int i = 0; i < 3; i++) {
        double light[2];
        for (int k = 0; k < 2; k++) {
            const double *xy = k ? target : white;
            light[k] = cone.at[i][0] * xy[0] / xy[1] + cone.at[i][1] + cone.at[i][2] * (1 - xy[0] - xy[1]) / xy[1];
        }
        if (!(light[0] > 1e-6)) return false;
        scale.at[i][i] = light[1] / light[0];
    }
    if (!invert(cone, &inverse)) return false;
    *into = product(inverse, product(scale, cone));
    return true;
}

/// Computes the steps of each primary of sRGB for the light of each of the file's primaries.
static bool fillMix(tern_icc *icc, primaries points) {
    primaries own;
    matrix from, to, back, adapted;
    if (!findPrimaries(1, &own) || !toXYZ(points, &from) || !toXYZ(own, &to) || !invert(to, &back)) return false;
    if (!adaptation(points.white, d65, &adapted)) return false;
    const matrix mix = product(back, product(adapted, from));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) icc->mix[i][j] = (float)(mix.at[i][j] * TERN_LIGHT_STEPS);
    return true;
}

/// The light of sRGB's white in cd/m² (ITU-R BT.2408-7, §2.1), and that of the brightest pixel of a picture that does not
/// state its own.
static const double white = 203, usualPeak = 1000;

/// Returns the light in cd/m² of a PQ value from 0 to 1, and the reverse (SMPTE ST 2084).
static double fromPQ(double value) {
    const double power = pow(value, 1 / 78.84375);
    return 10000 * pow(fmax(0, power - 0.8359375) / (18.8515625 - 18.6875 * power), 1 / 0.1593017578125);
}

static double toPQ(double light) {
    const double power = pow(light / 10000, 0.1593017578125);
    return pow((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power), 78.84375);
}

/// Returns the light in cd/m² that stands for a light, up to the white of sRGB (ITU-R BT.2390-11, §5.4.1).
static double mapped(double light, double peak) {
    const double top = toPQ(peak), most = toPQ(white) / top, knee = 1.5 * most - 0.5;
    const double value = fmin(toPQ(light) / top, 1);
    if (peak <= white || value < knee) return light;
    const double t = (value - knee) / (1 - knee), t2 = t * t, t3 = t2 * t;
    const double curve = (2 * t3 - 3 * t2 + 1) * knee + (t3 - 2 * t2 + t) * (1 - knee) + (3 * t2 - 2 * t3) * most;
    return fromPQ(curve * top);
}

static void fillPQ(tern_icc *icc, double peak) {
    icc->tones = TERN_TONES_PQ;
    for (int i = 0; i < 256; i++) {
        const double light = fromPQ(i / 255.0);
        for (int c = 0; c < 3; c++) icc->lights[c][i] = (float)(light / white);
        icc->peaks[i] = light > 0 ? (float)(mapped(light, peak) / light) : 1;
    }
    for (int i = 0; icc->fine && i <= TERN_FINE_STEPS; i++) {
        const double light = fromPQ(i / (double)TERN_FINE_STEPS);
        for (int c = 0; c < 3; c++) icc->fine->lights[c][i] = (float)(light / white);
        icc->fine->peaks[i] = light > 0 ? (float)(mapped(light, peak) / light) : 1;
    }
}

/// Returns the light of a scene from 0 to 1 for an HLG value from 0 to 1.
static double fromHLG(double value) {
    const double a = 0.17883277, b = 1 - 4 * a, c = 0.5 - a * log(4 * a);
    return fmin(value <= 0.5 ? value * value / 3 : (exp((value - c) / a) + b) / 12, 1);
}

/// HLG has light relative to the peak of a display of 1,000 cd/m², for which the power of its luminance is 1.2 (ITU-R
/// BT.2100-2, table 5).
static void fillHLG(tern_icc *icc) {
    icc->tones = TERN_TONES_HLG;
    for (int i = 0; i < 256; i++)
        for (int channel = 0; channel < 3; channel++) icc->lights[channel][i] = (float)fromHLG(i / 255.0);
    for (int i = 0; i <= TERN_TONE_STEPS; i++) {
        const double light = i / (double)TERN_TONE_STEPS;
        // Near black, the power of a step is not that of all of its colours: they are dark either way.
        icc->luminances[i] = (float)pow(fmax(light, 0.5 / TERN_TONE_STEPS), 0.2);
        const double absolute = fmax(light, 0.5 / TERN_TONE_STEPS) * usualPeak;
        icc->brightest[i] = (float)(mapped(absolute, usualPeak) / absolute * usualPeak / white);
    }
    for (int i = 0; icc->fine && i <= TERN_FINE_STEPS; i++) {
        const double value = i / (double)TERN_FINE_STEPS, light = fmax(value * value, 1e-7);
        for (int channel = 0; channel < 3; channel++) icc->fine->lights[channel][i] = (float)fromHLG(value);
        icc->fine->luminances[i] = (float)pow(light, 0.2);
        icc->fine->brightest[i] = (float)(mapped(light * usualPeak, usualPeak) / light / white);
    }
}

/// Returns the light for a value by a transfer of H.273, table 3, or not a number if it is not supported.
///
/// The transfers of BT.709, BT.601 and BT.2020 count as that of sRGB: they describe a camera, and pictures that state
/// them are made to look right on a display of sRGB.
static double light(unsigned transfer, double value) {
    switch (transfer) {
    case 1: case 2: case 6: case 11: case 13: case 14: case 15:
        return tern_srgb_light(value);
    case 4: return pow(value, 2.2);
    case 5: return pow(value, 2.8);
    case 7: return value < 0.0913 ? value / 4 : pow((value + 0.1115) / 1.1115, 1 / 0.45);
    case 8: return value;
    case 17: return pow(value, 2.6) * 52.37 / 48;
    default: return NAN;
    }
}

static double lightOf(const tern_color_numbers *color, double value) {
    return color->power > 0 ? pow(value, color->power) : light(color->transfer, value);
}

static bool fillTransfer(tern_icc *icc, const tern_color_numbers *color) {
    if (color->transfer == 16) {
        fillPQ(icc, color->peak > 0 ? fmin(fmax(color->peak, white), 10000) : usualPeak);
        return true;
    }
    if (color->transfer == 18) {
        fillHLG(icc);
        return true;
    }
    for (int i = 0; i < 256; i++) {
        const double light = lightOf(color, i / 255.0);
        if (isnan(light)) return false;
        for (int c = 0; c < 3; c++) icc->lights[c][i] = (float)fmax(0, fmin(light, 1));
    }
    for (int i = 0; icc->fine && i <= TERN_FINE_STEPS; i++) {
        const double light = lightOf(color, i / (double)TERN_FINE_STEPS);
        for (int c = 0; c < 3; c++) icc->fine->lights[c][i] = (float)fmax(0, fmin(light, 1));
    }
    return true;
}

/// Finds the primaries that numbers state. Returns false if they are not supported.
static bool readPrimaries(const tern_color_numbers *color, primaries *points) {
    if (!(color->points[7] > 0)) return findPrimaries(color->primaries, points);
    memcpy(points->white, color->points, sizeof points->white);
    memcpy(points->red, color->points + 2, sizeof points->red);
    memcpy(points->green, color->points + 4, sizeof points->green);
    memcpy(points->blue, color->points + 6, sizeof points->blue);
    return true;
}

tern_icc *tern_color_open(const tern_color_numbers *color, tern_color_target target, bool *plain) {
    *plain = false;
    primaries points;
    if (!readPrimaries(color, &points)) return NULL;
    tern_icc *icc = tern_icc_new(target);
    if (!icc) return NULL;
    const bool isKnown = fillMix(icc, points) && fillTransfer(icc, color);
    tern_icc_set_target(icc, target);
    *plain = isKnown && icc->tones == TERN_TONES_NONE && tern_icc_is_plain(icc);
    if (isKnown && !*plain) return icc;
    tern_icc_close(icc);
    return NULL;
}

uint8_t *tern_color_profile(const tern_color_numbers *color, size_t *count) {
    // The curve of sRGB (IEC 61966-2-1), and that of SMPTE 240M.
    static const double usual[5] = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
    static const double old[5] = {1 / 0.45, 1 / 1.1115, 0.1115 / 1.1115, 0.25, 0.0913};
    double power = color->power;
    if (!(power > 0)) {
        switch (color->transfer) {
        case 1: case 2: case 6: case 7: case 11: case 13: case 14: case 15: break;
        case 4: power = 2.2; break;
        case 5: power = 2.8; break;
        case 8: power = 1; break;
        case 17: power = 2.6; break;
        default: return NULL;
        }
    }
    const double scale = color->transfer == 17 ? pow(52.37 / 48, 1 / 2.6) : 1;
    const double plain[5] = {power, scale, 0, 0, 0};
    uint8_t curve[32];
    const size_t size = tern_profile_curve(curve, power > 0 ? plain : color->transfer == 7 ? old : usual);
    primaries points;
    matrix light, adapted;
    if (!readPrimaries(color, &points) || !toXYZ(points, &light) || !adaptation(points.white, d50, &adapted)) return NULL;
    light = product(adapted, light);
    const char *name = color->primaries == 12 && !(color->points[7] > 0) && !(power > 0) && color->transfer != 7
        ? "Display P3" : "Colors of a picture";
    return tern_profile_write(name, light.at, adapted.at, curve, size, count);
}
#endif
