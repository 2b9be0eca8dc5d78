#include "CTernSQLite.h"
#include <string.h>

#define PRIME1 0x9E3779B185EBCA87ULL
#define PRIME2 0xC2B2AE3D27D4EB4FULL
#define PRIME3 0x165667B19E3779F9ULL
#define PRIME4 0x85EBCA77C2B2AE63ULL
#define PRIME5 0x27D4EB2F165667C5ULL

static inline uint64_t rotate(uint64_t value, int bits) { return (value << bits) | (value >> (64 - bits)); }

// The specification reads little-endian words.
static inline uint64_t read64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}
static inline uint64_t read32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

static inline uint64_t round64(uint64_t lane, uint64_t input) {
    return rotate(lane + input * PRIME2, 31) * PRIME1;
}
static inline uint64_t merge(uint64_t hash, uint64_t lane) {
    return (hash ^ round64(0, lane)) * PRIME1 + PRIME4;
}

void tern_xxh64_begin(tern_xxh64_state *state, uint64_t seed) {
    memset(state, 0, sizeof *state);
    state->seed = seed;
    state->lanes[0] = seed + PRIME1 + PRIME2;
    state->lanes[1] = seed + PRIME2;
    state->lanes[2] = seed;
    state->lanes[3] = seed - PRIME1;
}

// Processes whole stripes of 32 bytes. The lanes stay in registers.
static const uint8_t *stripes(uint64_t lanes[4], const uint8_t *at, size_t count) {
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    for (const uint8_t *end = at + count / 32 * 32; at < end; at += 32) {
        a = round64(a, read64(at));
        b = round64(b, read64(at + 8));
        c = round64(c, read64(at + 16));
        d = round64(d, read64(at + 24));
    }
    lanes[0] = a;
    lanes[1] = b;
    lanes[2] = c;
    lanes[3] = d;
    return at;
}

void tern_xxh64_update(tern_xxh64_state *state, const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    if (count == 0) return;
    state->total += count;
    if (state->tailCount > 0) {
        size_t taken = 32 - state->tailCount < count ? 32 - state->tailCount : count;
        memcpy(state->tail + state->tailCount, at, taken);
        state->tailCount += (uint32_t)taken;
        at += taken;
        count -= taken;
        if (state->tailCount < 32) return;
        stripes(state->lanes, state->tail, 32);
        state->tailCount = 0;
    }
    at = stripes(state->lanes, at, count);
    state->tailCount = (uint32_t)(count % 32);
    memcpy(state->tail, at, state->tailCount);
}

uint64_t tern_xxh64_finish(const tern_xxh64_state *state) {
    const uint64_t *lanes = state->lanes;
    uint64_t hash;
    if (state->total >= 32) {
        hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
        for (int index = 0; index < 4; index++) hash = merge(hash, lanes[index]);
    } else {
        hash = state->seed + PRIME5;
    }
    hash += state->total;
    const uint8_t *at = state->tail;
    size_t left = state->tailCount;
    for (; left >= 8; at += 8, left -= 8) hash = rotate(hash ^ round64(0, read64(at)), 27) * PRIME1 + PRIME4;
    if (left >= 4) {
        hash = rotate(hash ^ (read32(at) * PRIME1), 23) * PRIME2 + PRIME3;
        at += 4;
        left -= 4;
    }
    for (; left > 0; at++, left--) hash = rotate(hash ^ (*at * PRIME5), 11) * PRIME1;
    hash = (hash ^ (hash >> 33)) * PRIME2;
    hash = (hash ^ (hash >> 29)) * PRIME3;
    return hash ^ (hash >> 32);
}

uint64_t tern_xxh64(const void *bytes, size_t count, uint64_t seed) {
    tern_xxh64_state state;
    tern_xxh64_begin(&state, seed);
    tern_xxh64_update(&state, bytes, count);
    return tern_xxh64_finish(&state);
}
