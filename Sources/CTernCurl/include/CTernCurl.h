// A thin layer over libcurl and the Linux calls that Swift cannot use directly, such as variadic functions.
#ifndef CTERNCURL_H
#define CTERNCURL_H

#if defined(__linux__)

#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
#else
#error "Tern needs libcurl's headers: install the Debian package libcurl4-openssl-dev (Fedora: libcurl-devel)"
#endif

#include <malloc.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

// curl_easy_setopt is variadic and a type-checking macro: the parentheses call the function itself.
static inline CURLcode tern_easy_set_long(CURL *easy, CURLoption option, long value) {
    return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode tern_easy_set_offset(CURL *easy, CURLoption option, int64_t value) {
    return (curl_easy_setopt)(easy, option, (curl_off_t)value);
}
static inline CURLcode tern_easy_set_string(CURL *easy, CURLoption option, const char *value) {
    return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode tern_easy_set_pointer(CURL *easy, CURLoption option, void *value) {
    return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode tern_easy_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return (curl_easy_setopt)(easy, option, value);
}

typedef size_t (*tern_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef int (*tern_seek_callback)(void *context, curl_off_t offset, int origin);
typedef int (*tern_prerequest_callback)(void *context, char *remote, char *local, int remotePort, int localPort);
typedef curl_socket_t (*tern_open_callback)(void *context, curlsocktype purpose, struct curl_sockaddr *address);
typedef int (*tern_close_callback)(void *context, curl_socket_t socket);

static inline CURLcode tern_easy_set_data_callback(CURL *easy, CURLoption option, tern_data_callback value) {
    return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode tern_easy_set_seek(CURL *easy, tern_seek_callback value) {
    return (curl_easy_setopt)(easy, CURLOPT_SEEKFUNCTION, value);
}
static inline CURLcode tern_easy_set_prerequest(CURL *easy, tern_prerequest_callback value) {
    return (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, value);
}
static inline CURLcode tern_easy_set_open_socket(CURL *easy, tern_open_callback value) {
    return (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETFUNCTION, value);
}
static inline CURLcode tern_easy_set_close_socket(CURL *easy, tern_close_callback value) {
    return (curl_easy_setopt)(easy, CURLOPT_CLOSESOCKETFUNCTION, value);
}
static inline CURLcode tern_easy_set_blob(CURL *easy, CURLoption option, void *bytes, size_t count) {
    struct curl_blob blob = { bytes, count, CURL_BLOB_COPY };
    return (curl_easy_setopt)(easy, option, &blob);
}

static inline CURLcode tern_easy_clear_blob(CURL *easy, CURLoption option) {
    return (curl_easy_setopt)(easy, option, (struct curl_blob *)0);
}

/// Returns the CURL_VERSION_… bits of the libcurl in use.
static inline int tern_curl_features(void) { return curl_version_info(CURLVERSION_NOW)->features; }

/// Returns the version of the libcurl in use, such as 0x080100 for 8.1.0.
static inline unsigned int tern_curl_version(void) { return curl_version_info(CURLVERSION_NOW)->version_num; }

/// Returns the name and version of the TLS library of the libcurl in use; null if there is none.
static inline const char *tern_curl_tls_version(void) { return curl_version_info(CURLVERSION_NOW)->ssl_version; }
/// Returns the file with the system's authorities that libcurl was built with; null if it does not state one.
static inline const char *tern_curl_ca_file(void) {
    curl_version_info_data *data = curl_version_info(CURLVERSION_NOW);
    return data->age >= CURLVERSION_SEVENTH ? data->cainfo : 0;
}

typedef CURLcode (*tern_tls_context_callback)(CURL *easy, void *ssl_context, void *context);
static inline CURLcode tern_easy_set_tls_context(CURL *easy, tern_tls_context_callback value) {
    return (curl_easy_setopt)(easy, CURLOPT_SSL_CTX_FUNCTION, value);
}

static inline long tern_easy_long(CURL *easy, CURLINFO info) {
    long value = 0;
    (curl_easy_getinfo)(easy, info, &value);
    return value;
}
static inline int64_t tern_easy_offset(CURL *easy, CURLINFO info) {
    curl_off_t value = 0;
    (curl_easy_getinfo)(easy, info, &value);
    return value;
}
static inline const char *tern_easy_string(CURL *easy, CURLINFO info) {
    char *value = 0;
    (curl_easy_getinfo)(easy, info, &value);
    return value;
}
static inline void *tern_easy_private(CURL *easy) {
    char *value = 0;
    (curl_easy_getinfo)(easy, CURLINFO_PRIVATE, &value);
    return value;
}

typedef int (*tern_socket_callback)(CURL *easy, curl_socket_t socket, int what, void *context, void *socketContext);
typedef int (*tern_timer_callback)(CURLM *multi, long milliseconds, void *context);

static inline CURLMcode tern_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return (curl_multi_setopt)(multi, option, value);
}
static inline CURLMcode tern_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) {
    return (curl_multi_setopt)(multi, option, value);
}
static inline CURLMcode tern_multi_set_socket(CURLM *multi, tern_socket_callback value) {
    return (curl_multi_setopt)(multi, CURLMOPT_SOCKETFUNCTION, value);
}
static inline CURLMcode tern_multi_set_timer(CURLM *multi, tern_timer_callback value) {
    return (curl_multi_setopt)(multi, CURLMOPT_TIMERFUNCTION, value);
}

/// Returns the next finished easy handle of a multi handle, and sets `result` to its result; null if there is none.
static inline CURL *tern_multi_finished(CURLM *multi, CURLcode *result) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg == CURLMSG_DONE) {
            *result = message->data.result;
            return message->easy_handle;
        }
    }
    return 0;
}

/// Registers, changes or removes `fd`. `operation` is EPOLL_CTL_ADD, _MOD or _DEL. Returns 0 or the error number.
int tern_epoll_control(int epoll, int operation, int fd, uint32_t events);
/// The socket and the bits of an event.
static inline int tern_event_fd(const struct epoll_event *event) { return event->data.fd; }
/// Closes a descriptor. Returns 0 or the error number.
int tern_close(int fd);
/// Reads the part of a file that is in memory: in the page cache, or in a tmpfs, which does not support RWF_NOWAIT and
/// has no disk. Returns −1 if the read would wait for a disk, or if the system cannot tell.
int64_t tern_read_in_memory(int fd, void *bytes, size_t count, int64_t offset);
/// Sets the calling thread's name, at most 15 bytes.
void tern_name_thread(const char *name);
/// Lets glibc keep up to 2 MiB of free memory at the top of each heap. glibc does so by itself once a program has freed
/// a block of 1 MiB. Until then, every burst of frees on the loop returns pages that the next turn faults in again.
void tern_keep_heap(void);
/// Sets libcurl up for the process, with the memory functions below unless libcurl is already set up.
void tern_curl_set_up(void);
/// Makes the calling thread keep the blocks that libcurl frees, from now on until the thread ends.
void tern_curl_keep_blocks(void);
/// Returns the number of bytes that the calling thread keeps.
size_t tern_curl_kept_bytes(void);
/// libcurl's malloc, free, calloc and realloc.
void *tern_curl_allocate(size_t count);
void tern_curl_release(void *block);
void *tern_curl_allocate_zeroed(size_t count, size_t size);
void *tern_curl_reallocate(void *block, size_t count);
/// Blocks SIGPIPE on the calling thread.
void tern_block_sigpipe(void);
/// Returns the calling thread's CPU time in user mode, in microseconds.
int64_t tern_thread_user_microseconds(void);
/// Returns the TLS object of the connection that carries the transfer now; null if there is none.
static inline void *tern_easy_tls(CURL *easy) {
    struct curl_tlssessioninfo *info = 0;
    (curl_easy_getinfo)(easy, CURLINFO_TLS_SSL_PTR, &info);
    return info ? info->internals : 0;
}
/// Returns whether a socket has a byte, an end or an error to be read. Reads nothing.
int tern_has_input(int fd);
/// Returns the local port of a socket; 0 if it has none.
int tern_local_port(int fd);
/// Returns the error number with which opening a descriptor fails now; 0 if it succeeds.
int tern_descriptor_problem(void);
/// Opens a non-blocking, close-on-exec socket for the address that curl requests. Returns −1 on failure.
curl_socket_t tern_open_socket(const struct curl_sockaddr *address);

#endif
#endif
