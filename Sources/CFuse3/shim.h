#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <linux/falloc.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// Tells the processor that this thread only waits, so that one which shares a core with it loses less.
static inline void coffer_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

// The processors on which a thread may run, the calling one where it is 0, one bit for each (sched_getaffinity(2) and
// sched_setaffinity(2)): below 0 where the system refuses, or has more of them.
enum { coffer_processor_words = 16 };
static inline int coffer_get_processors(pid_t thread, uint64_t *words) {
  return (int)syscall(SYS_sched_getaffinity, thread, coffer_processor_words * sizeof *words, words);
}
static inline int coffer_set_processors(pid_t thread, const uint64_t *words) {
  return (int)syscall(SYS_sched_setaffinity, thread, coffer_processor_words * sizeof *words, words);
}
// The calling thread's number.
static inline pid_t coffer_thread(void) { return (pid_t)syscall(SYS_gettid); }

// The kernel asks for a name anew before it uses it again, and keeps what it has until then. The library's function lost a parameter in
// later versions, of which this one is the only value that differs.
static inline int coffer_expire_entry(struct fuse_session *session, fuse_ino_t folder, const char *name, size_t count) {
#if defined(FUSE_CAP_EXPIRE_ONLY)
  typedef int (*with_flags)(struct fuse_session *, fuse_ino_t, const char *, size_t, unsigned);
  typedef int (*without_flags)(struct fuse_session *, fuse_ino_t, const char *, size_t);
  if (__builtin_types_compatible_p(__typeof__(&fuse_lowlevel_notify_expire_entry), without_flags))
    return ((without_flags)(void *)fuse_lowlevel_notify_expire_entry)(session, folder, name, count);
  return ((with_flags)(void *)fuse_lowlevel_notify_expire_entry)(session, folder, name, count, 1);
#else
  return -ENOSYS;
#endif
}

// Gives the calling thread a table of descriptors of its own, which is empty and goes with it (close_range(2), CLOSE_RANGE_UNSHARE): 0, or
// -1 where the system has no such call. The next ones are made without the C library, which sanitizers watch: to them a number stands for the same
// file in all threads.
static inline int coffer_leave_descriptors(void) { return (int)syscall(SYS_close_range, 0u, ~0u, 2u); }

// A folder to start from (O_PATH); -1 where there is none.
static inline int coffer_open_root(const char *path) {
  struct open_how how = {.flags = 010000000 | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC};
  return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

// A folder further down in the same file system, by no link.
static inline int coffer_open_within(int root, const char *path) {
  struct open_how how = {
      .flags = 010000000 | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
      .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
  };
  return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

// The device and number of an open file, as the kernel remembers them (statx(2), AT_STATX_DONT_SYNC).
static inline int coffer_identify(int file, uint32_t *major, uint32_t *minor, uint64_t *number) {
  struct statx found = {0};
  if (syscall(SYS_statx, file, "", 0x1000 | 0x4000, STATX_INO, &found) != 0) return -1;
  *major = found.stx_dev_major;
  *minor = found.stx_dev_minor;
  *number = found.stx_ino;
  return 0;
}
