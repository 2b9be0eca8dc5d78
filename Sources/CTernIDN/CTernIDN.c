#include "CTernIDN.h"

#if defined(__linux__)
#include <string.h>

int tern_idn_to_ascii(const char *label, char **ascii) {
    int flags = IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL;
    *ascii = 0;
    int code = idn2_to_ascii_8z(label, ascii, flags);
    // Emoji are valid by UTS #46, but not by IDNA 2008, which libidn2 also checks. Labels that are registered in their
    // ASCII form are therefore accepted. The check by UTS #46 still applies.
    if (code == IDN2_DISALLOWED && strncmp(label, "xn--", 4) == 0) {
        code = idn2_to_ascii_8z(label, ascii, flags | IDN2_NO_ALABEL_ROUNDTRIP);
    }
    return code;
}

void tern_idn_free(char *ascii) { idn2_free(ascii); }
#else
// An empty translation unit on other systems.
typedef int tern_idn_is_linux_only;
#endif
