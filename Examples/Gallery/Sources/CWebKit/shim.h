#ifndef TERN_CWEBKIT_SHIM_H
#define TERN_CWEBKIT_SHIM_H

// Of the module CGtk: its types are then one and the same in both modules.
#include "../CGtk/shim.h"
#include <webkit/webkit.h>

#endif
