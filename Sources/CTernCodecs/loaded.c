#include "loaded.h"

#if defined(__linux__)
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *tern_load(
    const char *const *names, size_t nameCount, const tern_symbol *symbols, size_t symbolCount, const char *advice,
    char *obstacle) {
    void *handle = NULL;
    for (size_t i = 0; i < nameCount && !handle; i++) handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    snprintf(obstacle, 160, "%s", advice);
    for (size_t i = 0; handle && i < symbolCount; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        memcpy(symbols[i].place, &symbol, sizeof symbol);
        if (symbol) continue;
        dlclose(handle);
        handle = NULL;
    }
    if (handle) obstacle[0] = 0;
    return handle;
}
#endif
