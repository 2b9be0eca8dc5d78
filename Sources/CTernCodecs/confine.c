#define _GNU_SOURCE
#include "confine.h"

#if defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// Calls that the headers of the lowest supported systems do not name. The numbers are those of all processors.
#define TERN_CLOSE_RANGE 436
#define TERN_LANDLOCK_CREATE 444
#define TERN_LANDLOCK_ADD 445
#define TERN_LANDLOCK_RESTRICT 446

void tern_leave_parent(void) {
    struct sigaction standard = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    // A file beyond the limit of its size is an error of the write, and not the end.
    for (int number = 1; number < NSIG; number++) sigaction(number, number == SIGXFSZ ? &ignored : &standard, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
}

void tern_close_from(int first) {
    if (syscall(TERN_CLOSE_RANGE, first, ~0U, 0) == 0) return;
    struct rlimit limit;
    int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1 << 20 ? (int)limit.rlim_cur : 1 << 20;
    for (int descriptor = first; descriptor < end; descriptor++) close(descriptor);
}

/// Lowers a limit.
static void limit(int resource, uint64_t most) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) return;
    if (limit.rlim_max > most) limit.rlim_max = most;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
}

/// The rights of Landlock: those to read and run files, and all of its first and third version.
#define MAY_READ 0xDULL
#define ALL_RIGHTS 0x1FFFULL
#define MAY_TRUNCATE 0x4000ULL

bool tern_confines_files(void) { return syscall(TERN_LANDLOCK_CREATE, NULL, 0, 1) >= 1; }

static void allowReading(int rules, const char *path) {
    // A packed structure of the kernel.
    struct { uint64_t rights; int32_t folder; } __attribute__((packed)) rule = {
        MAY_READ, open(path, O_PATH | O_CLOEXEC | O_DIRECTORY)};
    if (rule.folder < 0) return;
    syscall(TERN_LANDLOCK_ADD, rules, 1, &rule, 0);
    close(rule.folder);
}

/// Lets this process read files of the system, where programs, libraries and fonts are, and write none.
static void confineFiles(const char *folder) {
    static const char *const folders[] = {
        "/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc", "/var/cache/fontconfig", "/nix/store", "/gnu/store",
        "/run/current-system",
    };
    long version = syscall(TERN_LANDLOCK_CREATE, NULL, 0, 1);
    if (version < 1) return;
    uint64_t handled = ALL_RIGHTS | (version >= 3 ? MAY_TRUNCATE : 0);
    int rules = (int)syscall(TERN_LANDLOCK_CREATE, &handled, sizeof handled, 0);
    if (rules < 0) return;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) allowReading(rules, folders[i]);
    if (folder) allowReading(rules, folder);
    syscall(TERN_LANDLOCK_RESTRICT, rules, 0);
    close(rules);
}

#if defined(__x86_64__)
#define PROCESSOR AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define PROCESSOR AUDIT_ARCH_AARCH64
#endif

#if defined(PROCESSOR)
#define REFUSE(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define REFUSE_CALL(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), REFUSE(EACCES)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

/// Refuses the calls for network, other processes, and parts of the kernel that drawing does not need.
static void confineCalls(void) {
    const struct sock_filter filter[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROCESSOR, 1, 0),
        REFUSE(EACCES),
        LOAD(nr),
#if defined(__x86_64__)
        // The calls of x32.
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
        REFUSE(EACCES),
        REFUSE_CALL(SYS_fork),
        REFUSE_CALL(SYS_vfork),
#endif
        REFUSE_CALL(SYS_socket),
        REFUSE_CALL(SYS_connect),
        REFUSE_CALL(SYS_bind),
        REFUSE_CALL(SYS_ptrace),
        REFUSE_CALL(SYS_process_vm_readv),
        REFUSE_CALL(SYS_process_vm_writev),
        REFUSE_CALL(SYS_tkill),
        REFUSE_CALL(SYS_bpf),
        REFUSE_CALL(SYS_keyctl),
        REFUSE_CALL(SYS_add_key),
        REFUSE_CALL(SYS_unshare),
        REFUSE_CALL(SYS_perf_event_open),
        // pidfd_send_signal, io_uring_setup and pidfd_getfd.
        REFUSE_CALL(424),
        REFUSE_CALL(425),
        REFUSE_CALL(438),
        // A process may end itself by a signal.
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4),
        LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        REFUSE(EACCES),
        // The C library uses clone in place of clone3, of which a filter cannot read the flags.
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 435, 0, 1),
        REFUSE(ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
        REFUSE(EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {
        .len = sizeof filter / sizeof *filter, .filter = (struct sock_filter *)(uintptr_t)filter};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#else
static void confineCalls(void) {}
#endif

void tern_confine(const tern_confinement *confinement) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NOFILE, 64);
    limit(RLIMIT_CPU, confinement->seconds);
    limit(RLIMIT_DATA, confinement->memory);
    // Libraries and fonts are mapped from their files, which takes addresses, and memory that is shared.
    limit(RLIMIT_AS, confinement->memory + (1ULL << 30));
    // Needed for the filter of calls without rights, and a program of another user does not get that user's rights.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
    confineFiles(confinement->folder);
    confineCalls();
}
#endif
