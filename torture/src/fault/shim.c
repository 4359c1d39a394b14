/* Faults for a program that has no seam for them, by LD_PRELOAD.
 *
 * A file named by TORTURE_FAULTS is mapped and shared with the one who causes the faults. Its words:
 *   0  what fails: 1 the next sync, 2 every sync, 3 the next write at an offset, 4 every one
 *   1  how many such calls are let through before
 *   2  seconds added to the wall clock
 *   3  when the first call failed, in nanoseconds since 1970
 *   4  the descriptor of that call, and 6 its file's inode: of the two each may be used again, hardly both; a folder has
 *      no inode here, since each sync of one is another's and opens it anew
 *   5  syncs of that file after its failure */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic long *words;
static _Atomic long none[8];

static _Atomic long *control(void) {
    if (words) return words;
    const char *path = getenv("TORTURE_FAULTS");
    int fd = path ? open(path, O_RDWR) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    words = map == MAP_FAILED ? none : map;
    return words;
}

static long inode(int fd) {
    struct stat of;
    return fstat(fd, &of) == 0 && S_ISREG(of.st_mode) ? (long)of.st_ino : 0;
}

static int fails(int fd, long once, long always) {
    _Atomic long *c = control();
    long mode = c[0];
    if (once == 1 && c[3] && c[4] == fd && c[6] && c[6] == inode(fd)) c[5]++;
    if (mode != once && mode != always) return 0;
    if (atomic_fetch_sub(&c[1], 1) > 0) return 0;
    if (mode == once && !atomic_compare_exchange_strong(&c[0], &mode, 0)) return 0;
    if (!c[3]) {
        struct timespec now;
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
        c[4] = fd;
        c[6] = inode(fd);
        c[3] = now.tv_sec * 1000000000L + now.tv_nsec;
    }
    errno = EIO;
    return 1;
}

int fdatasync(int fd) { return fails(fd, 1, 2) ? -1 : syscall(SYS_fdatasync, fd); }

int fsync(int fd) { return fails(fd, 1, 2) ? -1 : syscall(SYS_fsync, fd); }

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    return fails(fd, 3, 4) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return pwrite64(fd, bytes, count, at); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = syscall(SYS_clock_gettime, clock, now);
    if (answer == 0 && clock == CLOCK_REALTIME) now->tv_sec += control()[2];
    return answer;
}
