// The declarations of <stdlib.h> that C files for Apple's systems use, as in the C standard. Only
// scripts/checks/apple reads them.
#pragma once
#include <stddef.h>
void *malloc(size_t), *calloc(size_t, size_t), *realloc(void *, size_t);
void free(void *);
int abs(int);
// POSIX, and there as well.
int posix_memalign(void **, size_t, size_t);
