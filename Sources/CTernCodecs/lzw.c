#include "lzw.h"

#if defined(__linux__)
#include <endian.h>
#include <string.h>

enum { NONE = TERN_LZW_CODES, MOST_BITS = 12, MOST_SIZE = 8, BATCH = 16384 };

static void clear(tern_lzw *lzw) {
    lzw->bits = lzw->size + 1;
    lzw->next = (1u << lzw->size) + 1;
    lzw->last = NONE;
    lzw->isLoose = false;
}

void tern_lzw_start(tern_lzw *lzw, unsigned size, uint32_t width, uint32_t height) {
    lzw->damage = size > MOST_SIZE ? "codes of an impossible size" : NULL;
    lzw->bytes = lzw->end = NULL;
    lzw->pool = lzw->held = 0;
    lzw->size = size > MOST_SIZE ? MOST_SIZE : size;
    lzw->width = width;
    lzw->left = (uint64_t)width * height;
    lzw->start = lzw->filled = 0;
    for (unsigned code = 0; code < 1u << lzw->size; code++)
        lzw->table[code] = (tern_lzw_string){.tail = code, .first = (uint8_t)code};
    clear(lzw);
}

void tern_lzw_block(tern_lzw *lzw, const uint8_t *block) {
    lzw->bytes = block + 1;
    lzw->end = lzw->bytes + *block;
    if (*block == 0) lzw->damage = "its data end before its pixels";
}

/// Defines a code as the string of another one and a byte.
static inline void define(tern_lzw_string *table, unsigned code, unsigned prefix, uint8_t byte) {
    const tern_lzw_string *from = &table[prefix];
    const unsigned more = from->more + 1u, place = more % 8;
    table[code] = (tern_lzw_string){
        .tail = place ? from->tail | (uint64_t)byte << place * 8 : byte, .head = place ? from->head : (uint16_t)prefix,
        .more = (uint16_t)more, .prefix = (uint16_t)prefix, .first = from->first};
}

static inline void put(uint8_t *at, uint64_t tail) {
    tail = htole64(tail);
    memcpy(at, &tail, sizeof tail);
}

/// Writes the string of a code, and up to 7 bytes behind it. Returns its end.
static inline uint8_t *copy(const tern_lzw_string *table, unsigned code, uint8_t *out) {
    const tern_lzw_string *string = &table[code];
    uint8_t *at = out + string->more / 8 * 8, *end = out + string->more + 1;
    put(at, string->tail);
    while (at > out) {
        string = &table[string->head];
        put(at -= 8, string->tail);
    }
    return end;
}

/// Writes the string of a code byte by byte. Returns its end, or NULL if it leads to an unknown code or in a circle.
static uint8_t *trace(const tern_lzw_string *table, unsigned code, unsigned defined, unsigned roots, uint8_t *out) {
    unsigned count = 1;
    for (unsigned at = code; at >= roots; at = table[at].prefix)
        if (at >= defined || ++count >= TERN_LZW_CODES) return NULL;
    uint8_t *end = out + count;
    for (; count > 1; code = table[code].prefix) out[--count] = (uint8_t)(table[code].tail >> table[code].more % 8 * 8);
    *out = (uint8_t)code;
    return end;
}

/// Writes the string of a code that can be the first one of its table, define itself, or be unknown, or whose table is
/// loose. Returns its end, or NULL if it has none.
static uint8_t *decodeUnusual(tern_lzw *lzw, unsigned code, unsigned next, unsigned last, uint8_t *out) {
    tern_lzw_string *const table = lzw->table;
    const unsigned roots = 1u << lzw->size, shown = code < next ? code : next;
    if (last == NONE && code >= roots) return NULL;
    // giflib reads an unknown code that does not define itself as the last string and a 2.
    if (code >= next) define(table, next, last, code == next ? table[last].first : 2);
    lzw->isLoose |= code > next;
    uint8_t *end = lzw->isLoose ? trace(table, shown, code < next ? next : next + 1, roots, out)
                                : copy(table, shown, out);
    if (!end) return NULL;
    table[shown].first = *out;
    if (code < next && last != NONE && next < TERN_LZW_CODES) define(table, next, last, *out);
    return end;
}

/// Fills the window up to a place, and with the rest of the last string.
static void decode(tern_lzw *lzw, size_t wanted) {
    const unsigned roots = 1u << lzw->size;
    tern_lzw_string *const table = lzw->table;
    const uint8_t *bytes = lzw->bytes, *const end = lzw->end;
    uint64_t pool = lzw->pool;
    unsigned held = lzw->held, bits = lzw->bits, next = lzw->next, last = lzw->last;
    uint8_t *out = lzw->window + lzw->filled, *const goal = lzw->window + wanted;
    // A code below this has a known string, and there is a last code.
    unsigned usual = lzw->isLoose || last == NONE ? 0 : next;
    while (out < goal) {
        if (end - bytes >= 8) {
            uint64_t more;
            memcpy(&more, bytes, sizeof more);
            pool |= le64toh(more) << held;
            bytes += (63 - held) / 8;
            held |= 56;
        } else if (held < bits) {
            for (; held <= 56 && bytes < end; held += 8) pool |= (uint64_t)*bytes++ << held;
            if (held < bits) break;
        }
        const unsigned code = pool & ((1u << bits) - 1);
        pool >>= bits;
        held -= bits;
        if (code == roots) {
            clear(lzw);
            bits = lzw->bits;
            next = lzw->next;
            last = NONE;
            usual = 0;
            continue;
        }
        if (code == roots + 1) {
            lzw->damage = "its codes end before its pixels";
            break;
        }
        if (code < usual) {
            if (next < TERN_LZW_CODES) define(table, next, last, table[code].first);
            out = copy(table, code, out);
        } else {
            uint8_t *after = decodeUnusual(lzw, code, next, last, out);
            if (!after) {
                lzw->damage = "a code that nothing has defined";
                break;
            }
            out = after;
        }
        last = code;
        if (next < TERN_LZW_CODES && ++next >= 1u << bits && bits < MOST_BITS) bits++;
        usual = lzw->isLoose ? 0 : next;
    }
    lzw->bytes = bytes;
    lzw->pool = pool;
    lzw->held = held;
    lzw->bits = bits;
    lzw->next = next;
    lzw->last = last;
    lzw->filled = (size_t)(out - lzw->window);
}

const uint8_t *tern_lzw_row(tern_lzw *lzw) {
    if (lzw->left == 0) return NULL;
    if (lzw->filled - lzw->start < lzw->width && !lzw->damage) {
        memmove(lzw->window, lzw->window + lzw->start, lzw->filled -= lzw->start);
        lzw->start = 0;
        const size_t wanted = lzw->width > BATCH ? lzw->width : BATCH;
        decode(lzw, wanted < lzw->left ? wanted : (size_t)lzw->left);
    }
    if (lzw->filled - lzw->start < lzw->width) return NULL;
    const uint8_t *row = lzw->window + lzw->start;
    lzw->start += lzw->width;
    lzw->left -= lzw->width;
    return row;
}
#endif
