// What a fuzzing loop needs of the system: the input that stays behind after a crash, and an end to what hangs.
#ifndef CFUZZ_H
#define CFUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The largest input.
#define CFUZZ_CAPACITY (1 << 20)

/// Keeps every input in the file from now on, and ends the process on one that takes more than `seconds` of processor
/// time, or ten times that by the clock.
bool cfuzz_open(const char *path, int seconds);
/// Before an input: what is in the file after a crash is this one. The first eight bytes are its length.
void cfuzz_begin(const uint8_t *bytes, size_t count);
void cfuzz_end(void);
/// Processor time of this process, in nanoseconds.
uint64_t cfuzz_spent(void);
/// Bytes that are allocated now, as the address sanitizer counts them; 0 without it.
size_t cfuzz_allocated(void);
/// Bytes of this process that are in memory now.
size_t cfuzz_resident(void);

#endif
