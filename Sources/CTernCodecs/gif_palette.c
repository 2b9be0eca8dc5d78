#include "gif_palette.h"

#if defined(__linux__)
#include <stdlib.h>
#include <string.h>

enum { CELLS = 1 << 15, SLOTS = 1024, NONE = 0xFFFF };

/// A range of the list of cells, with the sums of its pixels.
typedef struct {
    unsigned first, count;
    uint64_t pixels;
    /// The sum of the squared distances from the mean, in the channel where it is the largest.
    double spread;
    int channel;
} group;

struct tern_gif_palette {
    uint8_t colors[256][3];
    unsigned count;
    // Whether the colours are those of the pixels.
    bool isExact;
    // Exact colours, by a hash: the colour plus one, or 0 for an empty slot.
    uint32_t keys[SLOTS];
    uint8_t values[SLOTS];
    // The pixels of each cell, and the sums of their channels.
    uint32_t pixels[CELLS];
    uint64_t sums[CELLS][3];
    uint16_t list[CELLS];
    // The nearest colour of each cell; NONE for one that was not looked for.
    uint16_t nearest[CELLS];
};

tern_gif_palette *tern_gif_palette_open(void) { return malloc(sizeof(tern_gif_palette)); }

void tern_gif_palette_close(tern_gif_palette *palette) { free(palette); }

static uint32_t colorOf(const uint8_t *pixel) {
    return pixel[0] | (uint32_t)pixel[1] << 8 | (uint32_t)pixel[2] << 16;
}

/// Returns the slot of a colour, which is empty if the colour is not there.
static unsigned slotOf(const tern_gif_palette *palette, uint32_t color) {
    unsigned slot = (color * 2654435761u) >> 22;
    while (palette->keys[slot] && palette->keys[slot] != color + 1) slot = (slot + 1) % SLOTS;
    return slot;
}

static unsigned cellOf(const uint8_t *pixel) {
    return (unsigned)(pixel[0] >> 3) | (unsigned)(pixel[1] >> 3) << 5 | (unsigned)(pixel[2] >> 3) << 10;
}

/// Returns the mean of a cell's pixels in a channel.
static double meanOf(const tern_gif_palette *palette, unsigned cell, int channel) {
    return (double)palette->sums[cell][channel] / palette->pixels[cell];
}

static void measure(const tern_gif_palette *palette, group *of) {
    of->pixels = 0;
    of->spread = 0;
    of->channel = 0;
    for (unsigned i = of->first; i < of->first + of->count; i++) of->pixels += palette->pixels[palette->list[i]];
    for (int channel = 0; channel < 3; channel++) {
        double sum = 0, squares = 0;
        for (unsigned i = of->first; i < of->first + of->count; i++) {
            unsigned cell = palette->list[i];
            double mean = meanOf(palette, cell, channel);
            sum += mean * palette->pixels[cell];
            squares += mean * mean * palette->pixels[cell];
        }
        double spread = squares - sum * sum / (double)of->pixels;
        if (spread > of->spread) { of->spread = spread; of->channel = channel; }
    }
}

/// Sorts the cells of a group by a channel, with a count for each of its 32 values.
static void sortCells(tern_gif_palette *palette, const group *of, uint16_t *room) {
    unsigned starts[33] = {0};
    const int shift = of->channel * 5;
    uint16_t *cells = palette->list + of->first;
    for (unsigned i = 0; i < of->count; i++) starts[((cells[i] >> shift) & 31) + 1]++;
    for (int i = 0; i < 32; i++) starts[i + 1] += starts[i];
    for (unsigned i = 0; i < of->count; i++) room[starts[(cells[i] >> shift) & 31]++] = cells[i];
    memcpy(cells, room, of->count * sizeof *cells);
}

/// Splits a group at the mean of its widest channel. Returns false if it has no two cells that differ there.
static bool split(tern_gif_palette *palette, group *old, group *new, uint16_t *room) {
    if (old->count < 2 || old->spread <= 0) return false;
    sortCells(palette, old, room);
    double sum = 0;
    for (unsigned i = old->first; i < old->first + old->count; i++) {
        unsigned cell = palette->list[i];
        sum += (double)palette->sums[cell][old->channel];
    }
    const double mean = sum / (double)old->pixels;
    unsigned count = 0;
    while (count < old->count && meanOf(palette, palette->list[old->first + count], old->channel) <= mean) count++;
    if (count == 0 || count == old->count) count = old->count / 2;
    *new = (group){.first = old->first + count, .count = old->count - count};
    old->count = count;
    measure(palette, old);
    measure(palette, new);
    return true;
}

static void setColor(tern_gif_palette *palette, const group *of, unsigned index) {
    for (int channel = 0; channel < 3; channel++) {
        uint64_t sum = 0;
        for (unsigned i = of->first; i < of->first + of->count; i++) sum += palette->sums[palette->list[i]][channel];
        palette->colors[index][channel] = (uint8_t)((sum + of->pixels / 2) / of->pixels);
    }
}

static unsigned chooseGroups(
    tern_gif_palette *palette, const uint8_t *pixels, const uint8_t *mask, size_t count, unsigned limit) {
    // The nearest colours are not known before the groups are: their room is free.
    uint16_t *room = palette->nearest;
    memset(palette->pixels, 0, sizeof palette->pixels);
    memset(palette->sums, 0, sizeof palette->sums);
    for (size_t i = 0; i < count; i++) {
        if (!mask[i]) continue;
        unsigned cell = cellOf(pixels + i * 4);
        palette->pixels[cell]++;
        for (int channel = 0; channel < 3; channel++) palette->sums[cell][channel] += pixels[i * 4 + (size_t)channel];
    }
    group groups[256] = {{0}};
    unsigned groupCount = 1;
    for (unsigned cell = 0; cell < CELLS; cell++)
        if (palette->pixels[cell]) palette->list[groups[0].count++] = (uint16_t)cell;
    measure(palette, &groups[0]);
    while (groupCount < limit) {
        group *widest = groups;
        for (unsigned i = 1; i < groupCount; i++)
            if (groups[i].spread > widest->spread) widest = groups + i;
        if (!split(palette, widest, groups + groupCount, room)) break;
        groupCount++;
    }
    for (unsigned i = 0; i < groupCount; i++) setColor(palette, groups + i, i);
    for (unsigned cell = 0; cell < CELLS; cell++) palette->nearest[cell] = NONE;
    return groupCount;
}

unsigned tern_gif_palette_choose(
    tern_gif_palette *palette, const uint8_t *pixels, const uint8_t *mask, size_t count, unsigned limit) {
    memset(palette->keys, 0, sizeof palette->keys);
    palette->count = 0;
    palette->isExact = true;
    for (size_t i = 0; i < count && palette->isExact; i++) {
        if (!mask[i]) continue;
        const uint8_t *pixel = pixels + i * 4;
        unsigned slot = slotOf(palette, colorOf(pixel));
        if (palette->keys[slot]) continue;
        palette->isExact = palette->count < limit;
        if (!palette->isExact) break;
        palette->keys[slot] = colorOf(pixel) + 1;
        palette->values[slot] = (uint8_t)palette->count;
        memcpy(palette->colors[palette->count++], pixel, 3);
    }
    if (!palette->isExact) palette->count = chooseGroups(palette, pixels, mask, count, limit);
    return palette->count;
}

const uint8_t *tern_gif_palette_color(const tern_gif_palette *palette, unsigned index) {
    return palette->colors[index];
}

static unsigned nearestOf(tern_gif_palette *palette, const uint8_t *pixel) {
    uint16_t *known = &palette->nearest[cellOf(pixel)];
    if (*known != NONE) return *known;
    int best = 1 << 30;
    for (unsigned i = 0; i < palette->count; i++) {
        int distance = 0;
        for (int channel = 0; channel < 3; channel++) {
            // The middle of the cell.
            int difference = ((pixel[channel] & ~7) | 4) - palette->colors[i][channel];
            distance += difference * difference;
        }
        if (distance < best) { best = distance; *known = (uint16_t)i; }
    }
    return *known;
}

static uint8_t clamped(int value) { return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value; }

bool tern_gif_palette_map(
    tern_gif_palette *palette, const uint8_t *pixels, const uint8_t *mask, size_t width, size_t height,
    uint8_t *indices) {
    if (palette->isExact) {
        for (size_t i = 0; i < width * height; i++)
            if (mask[i]) indices[i] = palette->values[slotOf(palette, colorOf(pixels + i * 4))];
        return true;
    }
    // Errors in sixteenths, of this row and the next one, with a pixel on either side.
    const size_t line = (width + 2) * 3;
    int *errors = calloc(line * 2, sizeof *errors);
    if (!errors) return false;
    for (size_t y = 0; y < height; y++) {
        int *here = errors + (y & 1 ? line : 0) + 3, *below = errors + (y & 1 ? 0 : line) + 3;
        memset(below - 3, 0, line * sizeof *below);
        for (size_t x = 0; x < width; x++) {
            const size_t i = y * width + x;
            if (!mask[i]) continue;
            uint8_t wanted[3];
            for (size_t c = 0; c < 3; c++) {
                int error = here[x * 3 + c];
                wanted[c] = clamped(pixels[i * 4 + c] + (error + (error < 0 ? -8 : 8)) / 16);
            }
            const unsigned index = nearestOf(palette, wanted);
            indices[i] = (uint8_t)index;
            for (size_t c = 0; c < 3; c++) {
                int error = wanted[c] - palette->colors[index][c];
                here[x * 3 + 3 + c] += error * 7;
                (below - 3)[x * 3 + c] += error * 3;
                below[x * 3 + c] += error * 5;
                below[x * 3 + 3 + c] += error;
            }
        }
    }
    free(errors);
    return true;
}
#endif
