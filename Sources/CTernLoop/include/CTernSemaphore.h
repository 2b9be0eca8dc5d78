// A semaphore whose waits with a time limit do not follow the wall clock.
#ifndef CTERNSEMAPHORE_H
#define CTERNSEMAPHORE_H

#if defined(__linux__)

#include <stdbool.h>
#include <stdint.h>

/// A counting semaphore, by its address. Every thread may use it at any time until it is destroyed, so that it needs no further
/// isolation; as a number it is `Sendable` in Swift.
struct tern_semaphore {
    uintptr_t address;
};

/// Creates a semaphore with the count 0. Ends the process if there is no memory, as Swift does.
struct tern_semaphore tern_semaphore_create(void);

/// Destroys a semaphore, on which no thread waits.
void tern_semaphore_destroy(struct tern_semaphore semaphore);

/// Adds 1 to the count, and wakes a thread that waits.
void tern_semaphore_signal(struct tern_semaphore semaphore);

/// Waits until the count is above 0, and takes 1 from it. Returns false if `nanoseconds` have passed before, by the clock of
/// `CLOCK_MONOTONIC`, which nobody can set.
bool tern_semaphore_wait(struct tern_semaphore semaphore, uint64_t nanoseconds);

#endif
#endif
