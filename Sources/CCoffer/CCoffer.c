#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define __STDC_WANT_LIB_EXT1__ 1
#include "CCoffer.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <sys/ptrace.h>
extern int pthread_fchdir_np(int);
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
void coffer_overwrite_freed_memory(int value) { (void)value; }
ssize_t coffer_random(void *bytes, size_t count) {
  arc4random_buf(bytes, count);
  return (ssize_t)count;
}
int coffer_has_raised_privileges(void) { return 0; }
int coffer_is_without_core_dumps(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0;
}
int coffer_lock_memory(void) { return mlockall(MCL_CURRENT | MCL_FUTURE); }
int coffer_enter_directory(int directory) { return pthread_fchdir_np(directory); }
void coffer_leave_directory(void) { (void)pthread_fchdir_np(-1); }
int coffer_peer_user(int socket, uid_t *user) {
  gid_t group;
  return getpeereid(socket, user, &group);
}
int coffer_peer_process(int socket, pid_t *process) {
  socklen_t size = sizeof *process;
  return getsockopt(socket, SOL_LOCAL, LOCAL_PEERPID, process, &size);
}
short coffer_hang_up_event(void) { return POLLHUP; }
int coffer_has_other_processors(void) { return 0; }
void coffer_take_usual_processors(void) {}
#define MSG_CMSG_CLOEXEC 0
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#else
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>
#if defined(__GLIBC__)
#include <malloc.h>
void coffer_keep_freed_memory(int bytes, int largest, int areas) {
  mallopt(M_TRIM_THRESHOLD, bytes);
  mallopt(M_MMAP_THRESHOLD, largest);
  mallopt(M_ARENA_MAX, areas);
}
void coffer_overwrite_freed_memory(int value) { mallopt(M_PERTURB, value); }
#else
void coffer_keep_freed_memory(int bytes, int largest, int areas) { (void)bytes, (void)largest, (void)areas; }
void coffer_overwrite_freed_memory(int value) { (void)value; }
#endif
int coffer_has_raised_privileges(void) { return getauxval(AT_SECURE) != 0; }
int coffer_is_without_core_dumps(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
}
int coffer_lock_memory(void) { return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT); }
int coffer_enter_directory(int directory) { return unshare(CLONE_FS) == 0 ? fchdir(directory) : -1; }
void coffer_leave_directory(void) {
  // It is there, and to be entered by everybody.
  if (chdir("/") != 0) return;
}
int coffer_peer_user(int socket, uid_t *user) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  *user = peer.uid;
  return 0;
}
int coffer_peer_process(int socket, pid_t *process) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  *process = peer.pid;
  return 0;
}
short coffer_hang_up_event(void) { return POLLHUP | POLLRDHUP; }
int coffer_path_only(void) { return O_PATH; }
short coffer_spawn_new_session(void) { return POSIX_SPAWN_SETSID; }
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
int coffer_has_other_processors(void) {
  cpu_set_t usual, own;
  if (sched_getaffinity(getpid(), sizeof usual, &usual) != 0 || sched_getaffinity(0, sizeof own, &own) != 0) return 0;
  return !CPU_EQUAL(&usual, &own);
}
void coffer_take_usual_processors(void) {
  cpu_set_t usual;
  // Where that is refused it runs where whoever started it may.
  if (sched_getaffinity(getpid(), sizeof usual, &usual) == 0) (void)sched_setaffinity(0, sizeof usual, &usual);
}
int coffer_pidfd_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }
int coffer_spawn_close_from(posix_spawn_file_actions_t *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
int coffer_spawn_change_directory(posix_spawn_file_actions_t *actions, const char *path) {
  return posix_spawn_file_actions_addchdir_np(actions, path);
}
#endif

#if defined(__x86_64__)
// Those that `zero_call_used_regs` leaves, because not every processor has them. Ciphers keep round keys there.
__attribute__((target("avx"))) static void zero_upper_halves(void) { __asm__ volatile("vzeroall"); }
#define ZERO(number) "vpxord %%zmm" #number ", %%zmm" #number ", %%zmm" #number "\n\t"
__attribute__((target("avx512f"))) static void zero_upper_registers(void) {
  __asm__ volatile(ZERO(16) ZERO(17) ZERO(18) ZERO(19) ZERO(20) ZERO(21) ZERO(22) ZERO(23) ZERO(24) ZERO(25) ZERO(26)
                     ZERO(27) ZERO(28) ZERO(29) ZERO(30) ZERO(31)::);
}
#undef ZERO
static void zero_wide_registers(void) {
  if (__builtin_cpu_supports("avx512f")) zero_upper_registers();
  if (__builtin_cpu_supports("avx")) zero_upper_halves();
}
#else
static void zero_wide_registers(void) {}
#endif

// The frames of what has just returned lie where this one's are, and below. Not what a sanitizer makes of a frame, but the stack.
// Registers too: a call that is bound when it is first made, and a signal, store them on the stack.
__attribute__((noinline)) __attribute__((no_sanitize("address"))) __attribute__((zero_call_used_regs("all")))
void coffer_zero_stack(size_t count) {
  volatile char *frames = alloca(count);
  // From the top: where the stack has no room for it, the page that guards its end is met first.
  for (size_t rest = count; rest > 0; rest -= rest < 4096 ? rest : 4096) frames[rest - 1] = 0;
  coffer_zero((void *)frames, count);
  zero_wide_registers();
}

int coffer_ignores(int number) {
  struct sigaction action;
  return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int coffer_locked_memory_limit(struct rlimit *limit) { return getrlimit(RLIMIT_MEMLOCK, limit); }
int coffer_set_locked_memory_limit(const struct rlimit *limit) { return setrlimit(RLIMIT_MEMLOCK, limit); }

int coffer_raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit);
}

long coffer_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
  return (long)limit.rlim_cur;
}

int coffer_forbid_core_dumps(void) {
  struct rlimit none = {0, 0};
  return setrlimit(RLIMIT_CORE, &none) == 0 ? forbid_debuggers() : -1;
}

// Never a controlling terminal: a process in the background must not get one by opening what a person names.
int coffer_open(const char *path, int flags, mode_t mode) { return open(path, flags | O_NOCTTY, mode); }
int coffer_open_at(int directory, const char *path, int flags, mode_t mode) {
  return openat(directory, path, flags | O_NOCTTY, mode);
}

static int local_address(struct sockaddr_un *address, const char *path) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address->sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address->sun_path, path);
  return 0;
}

int coffer_bind_local(int socket, const char *path) {
  struct sockaddr_un address;
  if (local_address(&address, path) != 0) return -1;
  return bind(socket, (const struct sockaddr *)&address, sizeof address);
}

int coffer_connect_local(int socket, const char *path) {
  struct sockaddr_un address;
  if (local_address(&address, path) != 0) return -1;
  return connect(socket, (const struct sockaddr *)&address, sizeof address);
}

// Room for the descriptors of one message, aligned as the system wants it.
union descriptors {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(COFFER_DESCRIPTOR_LIMIT * sizeof(int))];
};

ssize_t coffer_send(int socket, const void *bytes, size_t count, const int *descriptors, int descriptor_count) {
  struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  union descriptors control;
  if (descriptor_count > 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE((size_t)descriptor_count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN((size_t)descriptor_count * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors, (size_t)descriptor_count * sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t coffer_receive(int socket, void *bytes, size_t count, int waits, int *descriptors, int *descriptor_count) {
  struct iovec part = {.iov_base = bytes, .iov_len = count};
  union descriptors control;
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  *descriptor_count = 0;
  ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
  if (got < 0) return got;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t size = header->cmsg_len - CMSG_LEN(0);
    for (size_t offset = 0; offset + sizeof(int) <= size; offset += sizeof(int)) {
      int number;
      memcpy(&number, CMSG_DATA(header) + offset, sizeof number);
      fcntl(number, F_SETFD, FD_CLOEXEC);
      if (*descriptor_count < COFFER_DESCRIPTOR_LIMIT) descriptors[(*descriptor_count)++] = number;
      else close(number);
    }
  }
  if (!(message.msg_flags & MSG_CTRUNC)) return got;
  while (*descriptor_count > 0) close(descriptors[--(*descriptor_count)]);
  errno = EMSGSIZE;
  return -1;
}

int coffer_set_modified(int descriptor, int64_t seconds, int64_t nanoseconds) {
  struct timespec times[2] = {{0, UTIME_OMIT}, {seconds, nanoseconds}};
  return futimens(descriptor, times);
}
void *coffer_map_memory(size_t count) {
  void *memory = mmap(NULL, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}
void coffer_unmap_memory(void *memory, size_t count) { munmap(memory, count); }

// For a program that runs without its caller's environment, as the agent does (Scripts/sanitize-mount).
#if defined(COFFER_SANITIZER_SETTINGS)
__attribute__((used, visibility("default"))) const char *__tsan_default_options(void) {
  return COFFER_SANITIZER_SETTINGS;
}
#endif
