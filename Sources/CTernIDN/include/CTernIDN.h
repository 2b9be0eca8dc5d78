// A thin layer over libidn2, which converts international host names (IDNA). Linux only: Apple's systems have their
// own.
#ifndef CTERNIDN_H
#define CTERNIDN_H

#if defined(__linux__)

#if __has_include(<idn2.h>)
#include <idn2.h>
#else
#error "Tern needs libidn2's headers: install the Debian package libidn2-dev (Fedora: libidn2-devel)"
#endif

/// Converts a label in UTF-8 to ASCII by UTS #46, non-transitional, or checks a label that begins with `xn--`. The
/// result does not depend on the process's locale. Returns IDN2_OK and a text to be freed with tern_idn_free, or
/// libidn2's error.
int tern_idn_to_ascii(const char *label, char **ascii);
void tern_idn_free(char *ascii);

#endif
#endif
