#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <linux/falloc.h>
#include <linux/fs.h>

// Under its own name where the library has no versioned symbols, else by a macro that Swift does not see.
static inline int coffer_fuse_loop(struct fuse_session *session, struct fuse_loop_config *configuration) {
  return fuse_session_loop_mt(session, configuration);
}
