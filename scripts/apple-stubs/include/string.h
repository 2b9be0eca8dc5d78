// What the C on Apple's systems uses of <string.h>, by the C standard; only scripts/check-apple reads it.
#pragma once
#include <stddef.h>
void *memcpy(void *, const void *, size_t), *memmove(void *, const void *, size_t), *memset(void *, int, size_t);
void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const char *);
