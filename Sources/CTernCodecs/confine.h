// The limits of a process that runs a program on bytes of a stranger. Called in the new process, which shares the
// memory of its parent until it runs the program: no function allocates memory or takes a lock.
#ifndef TERN_CONFINE_H
#define TERN_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    /// The path of the program.
    const char *program;
    /// The folder with the folders of the program and its libraries, or NULL if it is one of the system.
    const char *folder;
    /// The bytes of memory and the seconds of processor time.
    uint64_t memory, seconds;
} tern_confinement;

/// Puts the handlers of signals back, leaves the parent's session, and ends this process with the parent's thread.
void tern_leave_parent(void);
/// Sets limits on memory, processor time, descriptors and files, then takes away what the kernel can: network, other
/// processes, writing to files, and reading any but those of the system. An old kernel can less.
void tern_confine(const tern_confinement *confinement);
/// Returns whether the kernel can keep a process from files.
bool tern_confines_files(void);
/// Closes all descriptors from this one on.
void tern_close_from(int first);

#endif
