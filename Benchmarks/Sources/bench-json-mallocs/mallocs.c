// Counts allocations. Loaded before glibc, whose functions it calls:
//
//     BENCH_MALLOCS=FILE LD_PRELOAD=mallocs.so PROGRAM …
//
// writes their number into the file when the program ends. `realloc` counts as one.

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long count;

static void one_more(void) { atomic_fetch_add_explicit(&count, 1, memory_order_relaxed); }

void *malloc(size_t size) {
    one_more();
    return __libc_malloc(size);
}

void *calloc(size_t members, size_t size) {
    one_more();
    return __libc_calloc(members, size);
}

void *realloc(void *old, size_t size) {
    one_more();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    one_more();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *made = memalign(alignment, size);
    if (made == NULL) return ENOMEM;
    *result = made;
    return 0;
}

__attribute__((destructor)) static void report(void) {
    long counted = atomic_load(&count);
    const char *path = getenv("BENCH_MALLOCS");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file == NULL) return;
    fprintf(file, "%ld\n", counted);
    fclose(file);
}
