#define _GNU_SOURCE
#include "CTernSVG.h"

#if defined(__linux__)
#include "confine.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/// The stack of the new process until it runs the program.
#define STACK_SIZE (64 << 10)
#define PIDFD_FLAG 0x1000
#define PIDFD_KIND 3
#define NANOSECONDS 1000000000ULL

static atomic_int processCount;

struct tern_svg {
    const uint8_t *bytes;
    size_t count, sent;
    uint64_t deadline, nanoseconds;
    pid_t process;
    /// A descriptor of the process, or −1 on an old kernel; a socket of its input and output; a pipe of its errors.
    int handle, socket, errors;
    bool isOutputOpen, isReaped;
    uint8_t *picture;
    size_t length, capacity, mostLength;
    /// The end of the text of the errors.
    char text[2048];
    size_t textLength;
};

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NANOSECONDS + (uint64_t)time.tv_nsec;
}

/// Writes a length of CSS, in the same way in each locale.
static void writeLength(char *text, size_t capacity, double length) {
    unsigned long long parts = (unsigned long long)(length * 1e6 + 0.5);
    snprintf(text, capacity, "%llu.%06llupx", parts / 1000000, parts % 1000000);
}

/// Returns a file in memory with a style sheet that gives the first element its size, so that each file has the size that
/// Tern has read. Returns −1 if there is no descriptor for it.
static int openStyle(tern_svg_size size) {
    char width[40], height[40], style[160];
    writeLength(width, sizeof width, size.width);
    writeLength(height, sizeof height, size.height);
    int length = snprintf(
        style, sizeof style, ":root{width:%s!important;height:%s!important}", width, height);
    int file = memfd_create("size", MFD_CLOEXEC);
    if (file < 0) return -1;
    if (write(file, style, (size_t)length) == length && lseek(file, 0, SEEK_SET) == 0) return file;
    close(file);
    return -1;
}

typedef struct {
    tern_confinement confinement;
    char *const *arguments;
    int socket, errors, style;
    /// The error of a program that does not start.
    volatile int failure;
} launch;

/// The beginning of the new process. Nothing here allocates memory or takes a lock.
static int runChild(void *context) {
    static char *const environment[] = {
        "LANG=C.UTF-8", "HOME=/nonexistent", "PATH=/usr/bin:/bin", "MALLOC_ARENA_MAX=1", "RAYON_NUM_THREADS=1",
        "GIO_USE_VFS=local", "GSETTINGS_BACKEND=memory", NULL,
    };
    launch *with = context;
    tern_leave_parent();
    // The descriptors are beyond those that they are copied to.
    bool isReady = chdir("/") == 0 && dup2(with->socket, 0) == 0 && dup2(with->socket, 1) == 1
        && dup2(with->errors, 2) == 2 && dup2(with->style, 3) == 3;
    if (isReady) {
        tern_close_from(4);
        tern_confine(&with->confinement);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(with->confinement.program, with->arguments, environment);
    }
    with->failure = errno;
    _exit(127);
}

/// Starts a process that shares the memory of this one until it runs the program, as posix_spawn does. That function
/// sets no limits, and its process outlives this one. This thread waits until the program runs.
static pid_t start(launch *with, int *handle) {
    uint8_t *stack = malloc(STACK_SIZE);
    if (!stack) return -1;
    sigset_t all, before;
    sigfillset(&all);
    // No handler of this process runs in the new one.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    uint8_t *top = stack + STACK_SIZE - (uintptr_t)(stack + STACK_SIZE) % 16;
    pid_t process = clone(runChild, top, flags | PIDFD_FLAG, with, handle);
    if (process < 0 && errno == EINVAL) {
        *handle = -1;
        process = clone(runChild, top, flags, with);
    }
    int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(stack);
    errno = failure;
    return process;
}

/// Moves a descriptor beyond those of the new process. Returns −1 if there is none.
static int moved(int descriptor) {
    if (descriptor < 0 || descriptor > 3) return descriptor;
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 4);
    close(descriptor);
    return copy;
}

static void closeAll(const int *descriptors, int count) {
    for (int i = 0; i < count; i++) {
        if (descriptors[i] >= 0) close(descriptors[i]);
    }
}

/// Returns the folder above the program's folder, or NULL if it is the root.
static char *folder(const char *program) {
    char *path = strdup(program);
    for (int i = 0; path && i < 2; i++) {
        char *slash = strrchr(path, '/');
        if (slash) *slash = 0;
    }
    if (path && path[0]) return path;
    free(path);
    return NULL;
}

static tern_svg *fail(tern_svg *svg, int *result, tern_codec_result kind, char *error, const char *text, int code) {
    *result = kind;
    char words[80];
    snprintf(error, 160, "%s: %s", text, strerror_r(code, words, sizeof words));
    if (svg) free(svg->picture);
    free(svg);
    return NULL;
}

tern_svg *tern_svg_open(
    const uint8_t *bytes, size_t count, tern_svg_settings settings, int *result, char *error) {
    tern_svg *svg = calloc(1, sizeof *svg);
    if (!svg) return fail(NULL, result, TERN_CODEC_MEMORY, error, "no memory", ENOMEM);
    svg->bytes = bytes;
    svg->count = count;
    svg->nanoseconds = settings.nanoseconds;
    uint64_t begin = now();
    svg->deadline = settings.nanoseconds < UINT64_MAX - begin ? begin + settings.nanoseconds : UINT64_MAX;
    // The rows as they are, and what compression adds at most.
    uint64_t rows = ((uint64_t)settings.width * 4 + 1) * settings.height;
    svg->mostLength = (size_t)(rows + rows / 100 + (64 << 10));

    int sockets[2] = {-1, -1}, pipes[2] = {-1, -1};
    bool isOpen = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0
        && pipe2(pipes, O_CLOEXEC) == 0;
    int ends[] = {
        isOpen ? moved(sockets[1]) : sockets[1], isOpen ? moved(pipes[1]) : pipes[1],
        isOpen ? moved(openStyle(settings.size)) : -1, sockets[0], pipes[0],
    };
    if (!isOpen || ends[0] < 0 || ends[1] < 0 || ends[2] < 0) {
        int code = errno;
        closeAll(ends, 5);
        return fail(svg, result, TERN_CODEC_MEMORY, error, "no descriptors for rsvg-convert", code);
    }
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    char width[16], height[16];
    snprintf(width, sizeof width, "%u", settings.width);
    snprintf(height, sizeof height, "%u", settings.height);
    char *const arguments[] = {
        "rsvg-convert", "--format=png", "--stylesheet=/dev/fd/3", "--width", width, "--height", height, NULL,
    };
    char *above = folder(settings.program);
    uint64_t seconds = settings.nanoseconds / NANOSECONDS + 2;
    launch with = {
        .confinement = {settings.program, above, settings.memory, seconds},
        .arguments = arguments, .socket = ends[0], .errors = ends[1], .style = ends[2],
    };
    svg->handle = -1;
    svg->process = start(&with, &svg->handle);
    int code = svg->process < 0 ? errno : with.failure;
    free(above);
    closeAll(ends, 3);
    svg->socket = sockets[0];
    svg->errors = pipes[0];
    svg->isOutputOpen = true;
    if (svg->process < 0) {
        closeAll(ends + 3, 2);
        return fail(svg, result, TERN_CODEC_MEMORY, error, "no process for rsvg-convert", code);
    }
    atomic_fetch_add(&processCount, 1);
    if (!code) return svg;
    tern_svg_close(svg);
    return fail(NULL, result, TERN_CODEC_UNSUPPORTED, error, "rsvg-convert does not start", code);
}

/// Waits for the end of the process. Returns false if it still runs and `isPatient` is false.
static bool reap(tern_svg *svg, bool isPatient, int *status) {
    siginfo_t end = {0};
    int code;
    do {
        code = waitid(svg->handle < 0 ? P_PID : PIDFD_KIND, (id_t)(svg->handle < 0 ? svg->process : svg->handle), &end,
                      WEXITED | (isPatient ? 0 : WNOHANG));
        // Before Linux 5.4.
        if (code != 0 && errno == EINVAL && svg->handle >= 0) { close(svg->handle); svg->handle = -1; errno = EINTR; }
    } while (code != 0 && errno == EINTR);
    if (code == 0 && end.si_pid == 0) return false;
    svg->isReaped = true;
    // Without a status, something else in this process has taken it, or it ignores the ends of its children.
    if (code != 0) *status = -1;
    else *status = end.si_code == CLD_EXITED ? end.si_status : 1000 + end.si_status;
    return true;
}

void tern_svg_close(tern_svg *svg) {
    if (!svg) return;
    if (!svg->isReaped) {
        // The number of the process cannot have passed to another one, because its end has not been taken; and the
        // descriptor never does.
        if (svg->handle < 0 || syscall(SYS_pidfd_send_signal, svg->handle, SIGKILL, NULL, 0) != 0) {
            if (svg->handle < 0 || errno == ENOSYS) kill(svg->process, SIGKILL);
        }
        int status;
        reap(svg, true, &status);
    }
    atomic_fetch_sub(&processCount, 1);
    const int descriptors[] = {svg->handle, svg->socket, svg->errors};
    closeAll(descriptors, 3);
    free(svg->picture);
    free(svg);
}

bool tern_svg_confines_files(void) { return tern_confines_files(); }

int tern_svg_process_count(void) { return atomic_load(&processCount); }

/// Writes the last line of the errors, of printable ASCII, without the words before the reason.
static void writeReason(const tern_svg *svg, char *reason, size_t capacity) {
    static const char note[] = "note:", input[] = "stdin: ";
    size_t first = svg->textLength, end;
    do {
        end = first;
        while (end && (unsigned char)svg->text[end - 1] <= ' ') end--;
        first = end;
        while (first && svg->text[first - 1] != '\n') first--;
        // The program says how to find out more.
    } while (first && end - first >= strlen(note) && !memcmp(svg->text + first, note, strlen(note)));
    const char *words = memmem(svg->text + first, end - first, input, strlen(input));
    if (words) first = (size_t)(words - svg->text) + strlen(input);
    size_t length = 0;
    for (size_t at = first; at < end && length < capacity - 1; at++) {
        unsigned char value = (unsigned char)svg->text[at];
        reason[length++] = value >= ' ' && value < 0x7F ? (char)value : '?';
    }
    reason[length] = 0;
}

/// Returns whether the errors are about memory.
static bool lacksMemory(const tern_svg *svg) {
    static const char *const words[] = {
        "NoMemory", "No Memory", "out of memory", "memory allocation of", "failed to allocate",
        "Cannot allocate memory", "Error creating thread",
    };
    char text[sizeof svg->text + 1];
    memcpy(text, svg->text, svg->textLength);
    text[svg->textLength] = 0;
    for (size_t i = 0; i < svg->textLength; i++) {
        if (!text[i]) text[i] = ' ';
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(text, words[i])) return true;
    }
    return false;
}

/// Returns whether the output is a whole PNG, for a process whose status is not known.
static bool hasPicture(const tern_svg *svg) {
    static const uint8_t end[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xAE, 0x42, 0x60, 0x82};
    return svg->length > sizeof end && !memcmp(svg->picture + svg->length - sizeof end, end, sizeof end);
}

static tern_codec_result takesTooLong(const tern_svg *svg, char *error) {
    snprintf(error, 160, "drawing takes more than %.3g s, the time limit of the decoder",
             (double)svg->nanoseconds / 1e9);
    return TERN_CODEC_LIMIT;
}

static tern_codec_result judge(const tern_svg *svg, int status, char *error) {
    char reason[110];
    writeReason(svg, reason, sizeof reason);
    if (status == 0 || status == -1) {
        if (hasPicture(svg)) return TERN_CODEC_OK;
        if (!reason[0]) snprintf(reason, sizeof reason, "rsvg-convert gave no picture");
    }
    if (status == 1000 + SIGXCPU) return takesTooLong(svg, error);
    if (lacksMemory(svg)) {
        snprintf(error, 160, "drawing takes more memory than the limit: %s", reason);
        return TERN_CODEC_LIMIT;
    }
    if (status == 1000 + SIGKILL) {
        snprintf(error, 160, "rsvg-convert was killed, as the system does when memory is short");
        return TERN_CODEC_MEMORY;
    }
    if (status > 1000) snprintf(error, 160, "rsvg-convert ended with signal %d%s%s", status - 1000,
                                reason[0] ? ": " : "", reason);
    else snprintf(error, 160, "%s", reason[0] ? reason : "rsvg-convert failed");
    // The words of libxml2 for bytes behind the last end tag, whose error has the number of another one, too.
    if (strstr(reason, "Extra content at the end")) return TERN_CODEC_CORRUPT;
    return tern_svg_ends(svg->bytes, svg->count) ? TERN_CODEC_CORRUPT : TERN_CODEC_TRUNCATED;
}

/// Sends bytes until the socket is full.
static void sendBytes(tern_svg *svg) {
    while (svg->sent < svg->count) {
        ssize_t count = send(svg->socket, svg->bytes + svg->sent, svg->count - svg->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) return;
        // A process that reads no more says why in its errors.
        svg->sent = count < 0 ? svg->count : svg->sent + (size_t)count;
    }
    shutdown(svg->socket, SHUT_WR);
}

/// Receives a part of the picture.
static tern_codec_result receive(tern_svg *svg, char *error) {
    if (svg->capacity - svg->length < 64 << 10) {
        if (svg->length > svg->mostLength) {
            snprintf(error, 160, "rsvg-convert writes more than the picture");
            return TERN_CODEC_CORRUPT;
        }
        // One byte more than allowed shows that there are too many.
        const size_t most = svg->mostLength + (64 << 10) + 1;
        size_t capacity = svg->capacity * 2 + (128 << 10);
        if (capacity > most) capacity = most;
        uint8_t *grown = realloc(svg->picture, capacity);
        if (!grown) {
            snprintf(error, 160, "no memory for the picture");
            return TERN_CODEC_MEMORY;
        }
        svg->picture = grown;
        svg->capacity = capacity;
    }
    ssize_t count = recv(svg->socket, svg->picture + svg->length, svg->capacity - svg->length, MSG_DONTWAIT);
    if (count > 0) svg->length += (size_t)count;
    else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) svg->isOutputOpen = false;
    return TERN_CODEC_MORE;
}

/// Receives a part of the errors, of which the end stays.
static void receiveErrors(tern_svg *svg) {
    size_t half = sizeof svg->text / 2;
    if (svg->textLength == sizeof svg->text) {
        memmove(svg->text, svg->text + half, half);
        svg->textLength = half;
    }
    ssize_t count = read(svg->errors, svg->text + svg->textLength, sizeof svg->text - svg->textLength);
    if (count > 0) {
        svg->textLength += (size_t)count;
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(svg->errors);
        svg->errors = -1;
    }
}

tern_codec_result tern_svg_step(tern_svg *svg, char *error) {
    const uint64_t pause = 20 * 1000000ULL;
    uint64_t time = now();
    if (time >= svg->deadline) return takesTooLong(svg, error);
    uint64_t left = svg->deadline - time < pause ? svg->deadline - time : pause;
    bool isQuiet = !svg->isOutputOpen && svg->errors < 0;
    bool sends = svg->sent < svg->count;
    struct pollfd waits[] = {
        {.fd = svg->isOutputOpen ? svg->socket : -1, .events = (short)(POLLIN | (sends ? POLLOUT : 0))},
        {.fd = svg->errors, .events = POLLIN},
        // Its end before is not of interest: what it wrote is still to be read.
        {.fd = isQuiet ? svg->handle : -1, .events = POLLIN},
    };
    // Without a descriptor of the process, its end is looked for.
    int milliseconds = isQuiet && svg->handle < 0 ? 1 : (int)((left + 999999) / 1000000);
    if (poll(waits, 3, milliseconds) < 0 && errno != EINTR) {
        snprintf(error, 160, "waiting for rsvg-convert failed");
        return TERN_CODEC_MEMORY;
    }
    if (waits[0].revents & POLLOUT) sendBytes(svg);
    if (waits[0].revents & (POLLIN | POLLHUP | POLLERR)) {
        tern_codec_result result = receive(svg, error);
        if (result != TERN_CODEC_MORE) return result;
    }
    if (waits[1].revents) receiveErrors(svg);
    int status;
    if (!isQuiet || !reap(svg, false, &status)) return TERN_CODEC_MORE;
    return judge(svg, status, error);
}

const uint8_t *tern_svg_picture(const tern_svg *svg, size_t *count) {
    *count = svg->length;
    return svg->picture;
}
#endif
