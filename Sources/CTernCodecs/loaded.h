// Libraries that are loaded when the first file of their format arrives, because few programs need them.
#ifndef TERN_LOADED_H
#define TERN_LOADED_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name;
    /// The address of the pointer to the function.
    void *place;
} tern_symbol;

/// Loads the first library that is present and finds its functions. Sets `obstacle`, of 160 characters, to `advice` if
/// there is none or one of the functions is missing, and to an empty text otherwise. Returns the library or NULL.
void *tern_load(
    const char *const *names, size_t nameCount, const tern_symbol *symbols, size_t symbolCount, const char *advice,
    char *obstacle);

#endif
