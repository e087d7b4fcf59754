// Declarations that Glibc's Swift module lacks, and one-line functions. No logic lives here.
#ifndef COFFER_H
#define COFFER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#if defined(__linux__)
#include <spawn.h>
#endif

/// Overwrites memory in a way that the compiler may not remove.
void coffer_zero(void *bytes, size_t count);
// Overwrites that part of the stack which the frames of the functions that the caller has called lay in.
void coffer_zero_stack(size_t count);

/// renameat2 with RENAME_NOREPLACE on Linux, renamex_np with RENAME_EXCL on Apple systems.
int coffer_rename_exclusive(int old_directory, const char *old_name, int new_directory, const char *new_name);

/// fdatasync on Linux, fcntl(F_FULLFSYNC) on Apple systems.
int coffer_sync_data(int descriptor);

/// fsync on Linux, fcntl(F_FULLFSYNC) on Apple systems.
int coffer_sync(int descriptor);

/// Keeps this process's memory out of core dumps and away from debuggers of the same user.
int coffer_forbid_core_dumps(void);

/// Whether the program has more privileges than who started it, so that the system's linker hears nothing of the environment.
/// Linux alone has the call; elsewhere 0.
int coffer_has_raised_privileges(void);

/// Whether both are in force: no core file, and no debugger of the same user.
int coffer_is_without_core_dumps(void);

/// getrlimit(2) and setrlimit(2) of RLIMIT_MEMLOCK.
int coffer_locked_memory_limit(struct rlimit *limit);
int coffer_set_locked_memory_limit(const struct rlimit *limit);

/// Lets the process have as many descriptors as it may (RLIMIT_NOFILE).
int coffer_raise_descriptor_limit(void);

/// How many descriptors the process may have.
long coffer_descriptor_limit(void);

/// Locks all memory of the process, now and in future, as far as it is used (mlockall).
int coffer_lock_memory(void);

/// New pages of the process's own, without what was in them (mmap); NULL where there are none. And back again.
void *coffer_map_memory(size_t count);
void coffer_unmap_memory(void *memory, size_t count);

/// Whether the calling thread may run on other processors than the first of its process (Linux alone; elsewhere 0).
int coffer_has_other_processors(void);
/// Lets the calling thread run on those of the first one.
void coffer_take_usual_processors(void);

/// Gives the calling thread, and no other, a current directory of its own (unshare and fchdir on Linux).
int coffer_enter_directory(int directory);
/// Leads the thread that has entered one back to where its process is, on Linux to the root directory, and with it the threads that it
/// has started meanwhile, which share its current directory there.
void coffer_leave_directory(void);

/// The user at the other end of a connected local socket, or the one that listens there, as the system knows it.
int coffer_peer_user(int socket, uid_t *user);
/// The process that connected, or that listens there, as the system knows it.
int coffer_peer_process(int socket, pid_t *process);

/// What poll(2) tells of a stream whose other end will write no more.
short coffer_hang_up_event(void);

/// bind(2) and connect(2) of a local socket at a path; ENAMETOOLONG where an address cannot hold it.
int coffer_bind_local(int socket, const char *path);
int coffer_connect_local(int socket, const char *path);

/// Descriptors in one message at most.
#define COFFER_DESCRIPTOR_LIMIT 24

/// sendmsg(2) and recvmsg(2) with descriptors (SCM_RIGHTS). A sender whose peer is gone gets EPIPE and no signal. What
/// is received is closed on exec; more than the limit is closed, and the call fails with EMSGSIZE.
ssize_t coffer_send(int socket, const void *bytes, size_t count, const int *descriptors, int descriptor_count);
ssize_t coffer_receive(int socket, void *bytes, size_t count, int waits, int *descriptors, int *descriptor_count);

/// Whether the process ignores a signal.
int coffer_ignores(int signal);

/// Lets the allocator write over what is freed (M_PERTURB); nothing elsewhere.
void coffer_overwrite_freed_memory(int value);

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

/// O_PATH.
int coffer_path_only(void);

/// POSIX_SPAWN_SETSID.
short coffer_spawn_new_session(void);

/// posix_spawn_file_actions_addclosefrom_np and posix_spawn_file_actions_addchdir_np.
int coffer_spawn_close_from(posix_spawn_file_actions_t *actions, int first);
int coffer_spawn_change_directory(posix_spawn_file_actions_t *actions, const char *path);
#endif

#endif
