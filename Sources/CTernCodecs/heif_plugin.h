// The decoder of HEVC that Tern makes known to libheif.
#ifndef TERN_HEIF_PLUGIN_H
#define TERN_HEIF_PLUGIN_H

#include "CTernCodecs.h"

/// Loads libde265, and registers a decoder that uses it with a libheif. Sets `obstacle`, of 160 characters, to the
/// reason if it cannot.
void tern_heif_register(void *libheif, char *obstacle);
/// Makes libheif use that decoder for the pictures that the calling thread decodes, or again the decoder that other
/// users of libheif in the process have.
void tern_heif_claim(bool isClaimed);

#endif
