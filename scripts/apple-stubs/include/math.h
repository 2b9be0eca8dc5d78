// What the C on Apple's systems uses of <math.h>, by the C standard; only scripts/check-apple reads it.
#pragma once
#define M_PI 3.14159265358979323846
double sin(double), cos(double), asin(double), sqrt(double), floor(double), ceil(double), round(double);
double exp(double), pow(double, double), fabs(double), fmin(double, double), fmax(double, double);
float sinf(float), cosf(float), sqrtf(float), floorf(float), ceilf(float), expf(float), fabsf(float), roundf(float);
float fminf(float, float), fmaxf(float, float), powf(float, float);
long lround(double), lrint(double), lrintf(float), lroundf(float);
