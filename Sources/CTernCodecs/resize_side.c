#include "resize_side.h"
#include <math.h>
#include <string.h>

static double lanczos(double x) {
    if (x == 0) return 1;
    if (x <= -3 || x >= 3) return 0;
    double angle = M_PI * x;
    return 3 * sin(angle) * sin(angle / 3) / (angle * angle);
}

tern_side tern_make_side(uint32_t size, uint64_t eighths, uint32_t target, uint32_t step) {
    tern_side made = {.size = size, .extent = (double)eighths / 8, .target = target};
    made.scale = made.extent / target;
    made.stretch = made.scale < 1 ? 1 : made.scale;
    double wanted = ceil(3 * made.stretch) * 2 + 1;
    made.taps = ((wanted > size ? size : (uint32_t)wanted) + step - 1) / step * step;
    return made;
}

void tern_weigh(const tern_side *side, uint32_t index, uint32_t *start, double *row) {
    const double centre = (index + 0.5) * side->scale, support = 3 * side->stretch;
    const double low = floor(centre - support + 0.5), high = floor(centre + support + 0.5);
    const uint32_t first = low < 0 ? 0 : (uint32_t)low, end = high > side->size ? side->size : (uint32_t)high;
    const uint32_t last = side->size - 1;
    *start = side->taps > side->size ? 0 : first > side->size - side->taps ? side->size - side->taps : first;
    memset(row, 0, side->taps * sizeof *row);
    double sum = 0;
    for (uint32_t at = first; at < end && at - *start < side->taps; at++) {
        const double shown = at == last ? side->extent - last : 1;
        sum += row[at - *start] = shown * lanczos((at + shown / 2 - centre) / side->stretch);
    }
    for (uint32_t t = 0; t < side->taps; t++) row[t] /= sum;
}
