/* A disk that is full while the file FULL is there: no file grows. It is loaded before the C library. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int has_room(int file, off_t end)
{
    struct stat held;
    if (access(FULL, F_OK) != 0 || fstat(file, &held) != 0 || end <= held.st_size)
        return 1;
    errno = ENOSPC;
    return 0;
}

#define WRITE(name)                                                                              \
    ssize_t name(int file, const void *bytes, size_t length, off_t at)                           \
    {                                                                                            \
        ssize_t (*on_disk)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, #name);          \
        return has_room(file, at + (off_t)length) ? on_disk(file, bytes, length, at) : -1;       \
    }

#define WRITE_PARTS(name)                                                                        \
    ssize_t name(int file, const struct iovec *parts, int count, off_t at)                       \
    {                                                                                            \
        ssize_t (*on_disk)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, #name);     \
        off_t end = at;                                                                          \
        for (int part = 0; part < count; part++)                                                 \
            end += (off_t)parts[part].iov_len;                                                   \
        return has_room(file, end) ? on_disk(file, parts, count, at) : -1;                       \
    }

#define ALLOCATE(name)                                                                           \
    int name(int file, off_t at, off_t length)                                                   \
    {                                                                                            \
        int (*on_disk)(int, off_t, off_t) = dlsym(RTLD_NEXT, #name);                             \
        return has_room(file, at + length) ? on_disk(file, at, length) : ENOSPC;                 \
    }

WRITE(pwrite)
WRITE(pwrite64)
WRITE_PARTS(pwritev)
WRITE_PARTS(pwritev64)
ALLOCATE(posix_fallocate)
ALLOCATE(posix_fallocate64)
