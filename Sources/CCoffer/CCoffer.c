#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define __STDC_WANT_LIB_EXT1__ 1
#include "CCoffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <sys/ptrace.h>
void coffer_zero(void *bytes, size_t count) { memset_s(bytes, count, 0, count); }
int coffer_rename_exclusive(int od, const char *on, int nd, const char *nn) {
  return renameatx_np(od, on, nd, nn, RENAME_EXCL);
}
int coffer_sync_data(int descriptor) { return fcntl(descriptor, F_FULLFSYNC); }
int coffer_sync(int descriptor) { return fcntl(descriptor, F_FULLFSYNC); }
int coffer_punch_hole(int descriptor, int64_t offset, int64_t count) {
  fpunchhole_t hole = {.fp_offset = offset, .fp_length = count};
  return fcntl(descriptor, F_PUNCHHOLE, &hole);
}
static int forbid_debuggers(void) { return 0; }
int coffer_open_unnamed(int directory, mode_t mode) {
  (void)directory, (void)mode;
  errno = ENOTSUP;
  return -1;
}
int coffer_link_unnamed(int descriptor, int directory, const char *name) {
  (void)descriptor, (void)directory, (void)name;
  errno = ENOTSUP;
  return -1;
}
void coffer_keep_freed_memory(int bytes, int largest, int areas) { (void)bytes, (void)largest, (void)areas; }
ssize_t coffer_random(void *bytes, size_t count) {
  arc4random_buf(bytes, count);
  return (ssize_t)count;
}
#else
#include <sys/prctl.h>
#include <sys/random.h>
#if defined(__GLIBC__)
#include <malloc.h>
void coffer_keep_freed_memory(int bytes, int largest, int areas) {
  mallopt(M_TRIM_THRESHOLD, bytes);
  mallopt(M_MMAP_THRESHOLD, largest);
  mallopt(M_ARENA_MAX, areas);
}
#else
void coffer_keep_freed_memory(int bytes, int largest, int areas) { (void)bytes, (void)largest, (void)areas; }
#endif
ssize_t coffer_random(void *bytes, size_t count) { return getrandom(bytes, count, 0); }
#include <sys/syscall.h>
void coffer_zero(void *bytes, size_t count) { explicit_bzero(bytes, count); }
int coffer_rename_exclusive(int od, const char *on, int nd, const char *nn) {
  return renameat2(od, on, nd, nn, RENAME_NOREPLACE);
}
int coffer_punch_hole(int descriptor, int64_t offset, int64_t count) {
  return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, count);
}
int coffer_sync_data(int descriptor) { return fdatasync(descriptor); }
int coffer_sync(int descriptor) { return fsync(descriptor); }
int coffer_open_unnamed(int directory, mode_t mode) {
  return openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
}
int coffer_link_unnamed(int descriptor, int directory, const char *name) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW);
}
static int forbid_debuggers(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
int coffer_pidfd_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }
int coffer_spawn_close_from(posix_spawn_file_actions_t *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
int coffer_spawn_change_directory(posix_spawn_file_actions_t *actions, const char *path) {
  return posix_spawn_file_actions_addchdir_np(actions, path);
}
#endif

int coffer_forbid_core_dumps(void) {
  struct rlimit none = {0, 0};
  return setrlimit(RLIMIT_CORE, &none) == 0 ? forbid_debuggers() : -1;
}

int coffer_open(const char *path, int flags, mode_t mode) { return open(path, flags, mode); }
int coffer_open_at(int directory, const char *path, int flags, mode_t mode) {
  return openat(directory, path, flags, mode);
}

int coffer_set_modified(int descriptor, int64_t seconds, int64_t nanoseconds) {
  struct timespec times[2] = {{0, UTIME_OMIT}, {seconds, nanoseconds}};
  return futimens(descriptor, times);
}
