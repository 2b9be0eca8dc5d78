// The declarations of <math.h> that C files for Apple's systems use, as in the C standard. Only
// scripts/checks/apple reads them.
#pragma once
#define M_PI 3.14159265358979323846
double sin(double), cos(double), asin(double), sqrt(double), floor(double), ceil(double), round(double);
double exp(double), pow(double, double), fabs(double), fmin(double, double), fmax(double, double);
float sinf(float), cosf(float), sqrtf(float), floorf(float), ceilf(float), expf(float), fabsf(float), roundf(float);
float fminf(float, float), fmaxf(float, float), powf(float, float);
long lround(double), lrint(double), lrintf(float), lroundf(float);
