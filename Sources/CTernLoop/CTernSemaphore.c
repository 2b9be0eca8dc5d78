#define _GNU_SOURCE
#include "CTernSemaphore.h"

#if defined(__linux__)
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

// sem_timedwait, which Dispatch uses for its semaphores, waits on CLOCK_REALTIME: a clock that is set back by an hour lengthens
// the wait by that hour. sem_clockwait is missing in older C libraries, so that a condition with its own clock is used.
struct state {
    pthread_mutex_t mutex;
    pthread_cond_t isRaised;
    uint64_t count;
};

static struct state *state(struct tern_semaphore semaphore) { return (struct state *)semaphore.address; }

struct tern_semaphore tern_semaphore_create(void) {
    struct state *state = calloc(1, sizeof *state);
    pthread_condattr_t attributes;
    if (state == NULL || pthread_condattr_init(&attributes) != 0) { abort(); }
    if (pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) != 0) { abort(); }
    if (pthread_mutex_init(&state->mutex, NULL) != 0 || pthread_cond_init(&state->isRaised, &attributes) != 0) { abort(); }
    pthread_condattr_destroy(&attributes);
    struct tern_semaphore semaphore = { (uintptr_t)state };
    return semaphore;
}

void tern_semaphore_destroy(struct tern_semaphore semaphore) {
    pthread_cond_destroy(&state(semaphore)->isRaised);
    pthread_mutex_destroy(&state(semaphore)->mutex);
    free(state(semaphore));
}

void tern_semaphore_signal(struct tern_semaphore semaphore) {
    struct state *self = state(semaphore);
    pthread_mutex_lock(&self->mutex);
    self->count++;
    pthread_cond_signal(&self->isRaised);
    pthread_mutex_unlock(&self->mutex);
}

bool tern_semaphore_wait(struct tern_semaphore semaphore, uint64_t nanoseconds) {
    struct state *self = state(semaphore);
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    // About 30 years, which no sum of seconds exceeds.
    const uint64_t longest = (uint64_t)1000000000 * 1000000000;
    nanoseconds = (nanoseconds < longest ? nanoseconds : longest) + (uint64_t)deadline.tv_nsec;
    deadline.tv_sec += (time_t)(nanoseconds / 1000000000);
    deadline.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_mutex_lock(&self->mutex);
    int code = 0;
    while (self->count == 0 && code != ETIMEDOUT) {
        code = pthread_cond_timedwait(&self->isRaised, &self->mutex, &deadline);
    }
    bool hasSignal = self->count > 0;
    if (hasSignal) { self->count--; }
    pthread_mutex_unlock(&self->mutex);
    return hasSignal;
}
#else
// An empty translation unit on other systems.
typedef int tern_semaphore_is_linux_only;
#endif
