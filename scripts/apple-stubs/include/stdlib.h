// What the C on Apple's systems uses of <stdlib.h>, by the C standard; only scripts/check-apple reads it.
#pragma once
#include <stddef.h>
void *malloc(size_t), *calloc(size_t, size_t), *realloc(void *, size_t);
void free(void *);
int abs(int);
// POSIX, and there as well.
int posix_memalign(void **, size_t, size_t);
