// What the C on Apple's systems uses of <stdio.h>, by the C standard; only scripts/check-apple reads it.
#pragma once
#include <stddef.h>
int snprintf(char *, size_t, const char *, ...);
