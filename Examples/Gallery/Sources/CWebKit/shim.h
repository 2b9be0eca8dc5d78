#ifndef TERN_CWEBKIT_SHIM_H
#define TERN_CWEBKIT_SHIM_H

// Includes the header of CGtk, so that both modules share its types.
#include "../CGtk/shim.h"
#include <webkit/webkit.h>

#endif
