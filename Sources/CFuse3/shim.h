#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <linux/falloc.h>
#include <linux/fs.h>
