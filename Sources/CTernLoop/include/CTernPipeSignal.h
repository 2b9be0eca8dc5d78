// Keeps SIGPIPE from the process during calls that have no flag for it, such as sendfile and splice.
#ifndef CTERNPIPESIGNAL_H
#define CTERNPIPESIGNAL_H

#if defined(__linux__)

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

/// The state of the calling thread before `tern_pipe_signal_hold`.
struct tern_pipe_signal {
    sigset_t mask;
    /// True if a signal was pending before, which is not taken back.
    bool was_pending;
};

/// Blocks SIGPIPE in the calling thread, to which the system sends it. Returns false, with errno, if the system refuses that.
static inline bool tern_pipe_signal_hold(struct tern_pipe_signal *before) {
    sigset_t pipe, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    int code = pthread_sigmask(SIG_BLOCK, &pipe, &before->mask);
    if (code != 0) {
        errno = code;
        return false;
    }
    // A signal that is not blocked is never pending.
    before->was_pending = sigismember(&before->mask, SIGPIPE) == 1 && sigpending(&pending) == 0
        && sigismember(&pending, SIGPIPE) == 1;
    return true;
}

/// Takes back a signal that was raised since `tern_pipe_signal_hold`, and restores the mask. Keeps errno.
///
/// A call can raise the signal and nevertheless return a number of bytes, if the peer has closed the connection after it took
/// them. The result therefore does not tell.
static inline void tern_pipe_signal_release(const struct tern_pipe_signal *before) {
    int code = errno;
    if (!before->was_pending) {
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        struct timespec none = { 0 };
        while (sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR) {}
    }
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    errno = code;
}

#endif
#endif
