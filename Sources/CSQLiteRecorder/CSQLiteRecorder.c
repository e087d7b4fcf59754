#include "CSQLiteRecorder.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static coffer_sqlite_observer observe;
static coffer_sqlite_checkpoint_pages checkpoint_pages;
static coffer_sqlite_sync_failure sync_failure;

/// A layer of ours, and the one of SQLite's that it is put above.
typedef struct {
  sqlite3_vfs vfs;
  sqlite3_vfs *below;
} recording_layer;

/// Our part of an open file; that of the layer below lies behind it.
typedef struct {
  sqlite3_file base;
  const char *path;
  /// Where SQLite keeps the connection that the file belongs to; for databases.
  sqlite3 **connection;
} recorded_file;

#define BELOW(file) ((sqlite3_file *)((char *)(file) + sizeof(recorded_file)))
#define PATH(file) (((recorded_file *)(file))->path)

static int file_close(sqlite3_file *file) { return BELOW(file)->pMethods->xClose(BELOW(file)); }

static int file_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  return BELOW(file)->pMethods->xRead(BELOW(file), bytes, count, offset);
}

static int file_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  int result = BELOW(file)->pMethods->xWrite(BELOW(file), bytes, count, offset);
  if (result == SQLITE_OK) observe(coffer_sqlite_write, file, PATH(file), bytes, count, offset);
  return result;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
  int result = BELOW(file)->pMethods->xTruncate(BELOW(file), size);
  if (result == SQLITE_OK) observe(coffer_sqlite_truncate, file, PATH(file), NULL, 0, size);
  return result;
}

static int file_sync(sqlite3_file *file, int flags) {
  // The layer below syncs a new log's folder within this call; `open_directory` tells of it, after this.
  observe(coffer_sqlite_sync, file, PATH(file), NULL, 0, 0);
  int result = BELOW(file)->pMethods->xSync(BELOW(file), flags);
  return sync_failure(PATH(file)) ? SQLITE_IOERR_FSYNC : result;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
  return BELOW(file)->pMethods->xFileSize(BELOW(file), size);
}
static int file_lock(sqlite3_file *file, int level) { return BELOW(file)->pMethods->xLock(BELOW(file), level); }
static int file_unlock(sqlite3_file *file, int level) { return BELOW(file)->pMethods->xUnlock(BELOW(file), level); }
static int file_check_lock(sqlite3_file *file, int *result) {
  return BELOW(file)->pMethods->xCheckReservedLock(BELOW(file), result);
}
static int file_control(sqlite3_file *file, int operation, void *argument) {
  recorded_file *recorded = (recorded_file *)file;
  if (operation == SQLITE_FCNTL_PDB) recorded->connection = argument;
  // The first thing that is known of a connection once it is made: before, SQLite would set its own number after this.
  if (operation == SQLITE_FCNTL_PRAGMA && recorded->connection && *recorded->connection) {
    int pages = checkpoint_pages(PATH(file));
    if (pages > 0) sqlite3_wal_autocheckpoint(*recorded->connection, pages);
  }
  return BELOW(file)->pMethods->xFileControl(BELOW(file), operation, argument);
}
static int file_sector_size(sqlite3_file *file) { return BELOW(file)->pMethods->xSectorSize(BELOW(file)); }
static int file_characteristics(sqlite3_file *file) {
  return BELOW(file)->pMethods->xDeviceCharacteristics(BELOW(file));
}
static int file_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **memory) {
  return BELOW(file)->pMethods->xShmMap(BELOW(file), region, size, extend, memory);
}
static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
  return BELOW(file)->pMethods->xShmLock(BELOW(file), offset, count, flags);
}
static void file_shm_barrier(sqlite3_file *file) { BELOW(file)->pMethods->xShmBarrier(BELOW(file)); }
static int file_shm_unmap(sqlite3_file *file, int remove) {
  return BELOW(file)->pMethods->xShmUnmap(BELOW(file), remove);
}

/// Version 2: without memory mapping, so that no byte goes another way.
static const sqlite3_io_methods methods = {
    2,         file_close,      file_read,    file_write,       file_truncate,        file_sync,    file_size,
    file_lock, file_unlock,     file_check_lock, file_control,  file_sector_size,     file_characteristics,
    file_shm_map, file_shm_lock, file_shm_barrier, file_shm_unmap, NULL, NULL,
};

static sqlite3_vfs *below(sqlite3_vfs *vfs) { return ((recording_layer *)vfs)->below; }

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *outFlags) {
  recorded_file *recorded = (recorded_file *)file;
  memset(file, 0, (size_t)below(vfs)->szOsFile + sizeof(recorded_file));
  int result = below(vfs)->xOpen(below(vfs), path, BELOW(file), flags, outFlags);
  if (BELOW(file)->pMethods) {
    recorded->base.pMethods = &methods;
    // SQLite keeps the name of a file at least until the file is closed. Files without a name are temporary.
    recorded->path = path;
  }
  if (result == SQLITE_OK) observe(coffer_sqlite_open, file, path, NULL, 0, 0);
  return result;
}

/// What this thread is removing, until it was told.
static _Thread_local const char *deleting;

static void tell_deletion(void) {
  if (deleting) observe(coffer_sqlite_delete, NULL, deleting, NULL, 0, 0);
  deleting = NULL;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int syncFolder) {
  deleting = path;
  int result = below(vfs)->xDelete(below(vfs), path, syncFolder);
  if (result == SQLITE_OK) tell_deletion();
  deleting = NULL;
  return result;
}

static int (*below_open_directory)(const char *, int *);

/// The layer below opens a folder for one thing only: to sync it. Where it removed a file, it has done so before.
static int open_directory(const char *path, int *descriptor) {
  tell_deletion();
  observe(coffer_sqlite_sync_folder, NULL, path, NULL, 0, 0);
  return below_open_directory(path, descriptor);
}

/// Puts a layer above one of SQLite's, under `name`.
static int put_above(recording_layer *layer, sqlite3_vfs *below, const char *name, int is_default) {
  if (!below || below->iVersion < 3) return SQLITE_ERROR;
  // What is not told is the layer below's own, which takes itself from its own table and not from its argument.
  layer->vfs = *below;
  layer->below = below;
  layer->vfs.pNext = NULL;
  layer->vfs.zName = name;
  layer->vfs.szOsFile = below->szOsFile + (int)sizeof(recorded_file);
  layer->vfs.xOpen = vfs_open;
  layer->vfs.xDelete = vfs_delete;
  return sqlite3_vfs_register(&layer->vfs, is_default);
}

int coffer_sqlite_record(
    coffer_sqlite_observer observer, coffer_sqlite_checkpoint_pages pages, coffer_sqlite_sync_failure failure) {
  static recording_layer usual, of_one_process;
  sqlite3_vfs *below = sqlite3_vfs_find(NULL);
  if (!below || below->iVersion < 3) return SQLITE_ERROR;
  observe = observer;
  checkpoint_pages = pages;
  sync_failure = failure;
  // The layers have their system calls in common.
  below_open_directory = (int (*)(const char *, int *))below->xGetSystemCall(below, "openDirectory");
  if (!below_open_directory) return SQLITE_ERROR;
  int result = below->xSetSystemCall(below, "openDirectory", (sqlite3_syscall_ptr)open_directory);
  // In the place of SQLite's of that name, for which whoever opens an index asks.
  if (result == SQLITE_OK) result = put_above(&of_one_process, sqlite3_vfs_find("unix-excl"), "unix-excl", 0);
  return result == SQLITE_OK ? put_above(&usual, below, "coffer-recorder", 1) : result;
}
