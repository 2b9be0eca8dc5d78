// The declarations of <stdio.h> that C files for Apple's systems use, as in the C standard. Only
// scripts/checks/apple reads them.
#pragma once
#include <stddef.h>
int snprintf(char *, size_t, const char *, ...);
