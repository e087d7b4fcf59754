// Layers over SQLite's file layers that tell what SQLite stores. For tests.
#ifndef COFFER_SQLITE_RECORDER_H
#define COFFER_SQLITE_RECORDER_H

#include <stdint.h>

typedef enum {
  /// A file was opened, and made where it was not there.
  coffer_sqlite_open,
  coffer_sqlite_write,
  /// The file has `offset` bytes now.
  coffer_sqlite_truncate,
  /// Told before the file's bytes are made durable.
  coffer_sqlite_sync,
  /// Told before the names in the folder that holds `path` are made durable.
  coffer_sqlite_sync_folder,
  coffer_sqlite_delete,
} coffer_sqlite_operation;

/// `file` tells open files apart; it is NULL for what is done by path. Changes are told after they were made.
typedef void (*coffer_sqlite_observer)(
    coffer_sqlite_operation operation, const void *file, const char *path, const void *bytes, int64_t count,
    int64_t offset);

/// After how many pages of its log the database at `path` shall be checkpointed; 0 leaves that to SQLite.
typedef int (*coffer_sqlite_checkpoint_pages)(const char *path);

/// Whether making the file at `path` durable shall fail, after its bytes were made so: as a disk that fails to answer does.
typedef int (*coffer_sqlite_sync_failure)(const char *path);

/// Puts layers that tell `observer` everything above SQLite's default and its "unix-excl", for all connections that are opened from now
/// on. Once in a process. Returns an SQLite result code.
int coffer_sqlite_record(
    coffer_sqlite_observer observer, coffer_sqlite_checkpoint_pages pages, coffer_sqlite_sync_failure failure);

#endif
