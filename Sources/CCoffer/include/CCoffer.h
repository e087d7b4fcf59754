// Declarations that Glibc's Swift module lacks, and one-line functions. No logic lives here.
#ifndef COFFER_H
#define COFFER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#if defined(__linux__)
#include <spawn.h>
#endif

/// Overwrites memory in a way that the compiler may not remove.
void coffer_zero(void *bytes, size_t count);

/// renameat2 with RENAME_NOREPLACE on Linux, renamex_np with RENAME_EXCL on Apple systems.
int coffer_rename_exclusive(int old_directory, const char *old_name, int new_directory, const char *new_name);

/// fdatasync on Linux, fcntl(F_FULLFSYNC) on Apple systems.
int coffer_sync_data(int descriptor);

/// fsync on Linux, fcntl(F_FULLFSYNC) on Apple systems.
int coffer_sync(int descriptor);

/// Keeps this process's memory out of core dumps and away from debuggers of the same user.
int coffer_forbid_core_dumps(void);

/// Lets the allocator keep this many freed bytes at the end of each of its areas (M_TRIM_THRESHOLD), and take buffers of
/// up to `largest` bytes from there instead of mapping each (M_MMAP_THRESHOLD), from so many areas (M_ARENA_MAX); nothing
/// elsewhere.
void coffer_keep_freed_memory(int bytes, int largest, int areas);

/// getrandom on Linux, arc4random_buf on Apple systems: how many bytes were filled, or -1.
ssize_t coffer_random(void *bytes, size_t count);

/// Gives back the space of a part of a file, which reads as zeros afterwards; the file's size stays (fallocate with
/// FALLOC_FL_PUNCH_HOLE on Linux, fcntl(F_PUNCHHOLE) on Apple systems).
int coffer_punch_hole(int descriptor, int64_t offset, int64_t count);

/// open(2) and openat(2) without C's variable arguments.
int coffer_open(const char *path, int flags, mode_t mode);
int coffer_open_at(int directory, const char *path, int flags, mode_t mode);

/// Opens a new file without a name in a directory (O_TMPFILE); ENOTSUP where the system has none.
int coffer_open_unnamed(int directory, mode_t mode);

/// Gives such a file a name, without replacing one.
int coffer_link_unnamed(int descriptor, int directory, const char *name);

/// futimens that leaves the time of last access (UTIME_OMIT is a macro that Swift does not see).
int coffer_set_modified(int descriptor, int64_t seconds, int64_t nanoseconds);

#if defined(__linux__)
/// pidfd_open(2): a descriptor that becomes readable when the process ends.
int coffer_pidfd_open(pid_t process);

/// posix_spawn_file_actions_addclosefrom_np and posix_spawn_file_actions_addchdir_np.
int coffer_spawn_close_from(posix_spawn_file_actions_t *actions, int first);
int coffer_spawn_change_directory(posix_spawn_file_actions_t *actions, const char *path);
#endif

#endif
