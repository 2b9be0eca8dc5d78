// The declarations of <string.h> that C files for Apple's systems use, as in the C standard. Only
// scripts/checks/apple reads them.
#pragma once
#include <stddef.h>
void *memcpy(void *, const void *, size_t), *memmove(void *, const void *, size_t), *memset(void *, int, size_t);
void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const char *);
