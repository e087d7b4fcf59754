#include "CSQLiteAccess.h"

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <string.h>

int coffer_sqlite_defend(void *connection) {
  int result = sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  if (result != SQLITE_OK) return result;
  // No row that Coffer writes is larger; one that somebody else wrote is refused before it is read into memory.
  sqlite3_limit((sqlite3 *)connection, SQLITE_LIMIT_LENGTH, 16 << 20);
  const int switched_off[] = {
      SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_TRIGGER};
  for (size_t i = 0; result == SQLITE_OK && i < sizeof switched_off / sizeof *switched_off; i++) {
    result = sqlite3_db_config((sqlite3 *)connection, switched_off[i], 0, NULL);
  }
  return result;
}

static int authorize(
    void *is_refused, int action, const char *first, const char *second, const char *database, const char *source) {
  // SQLite compiles a pragma anew each time that it is run, and nothing else with it.
  return *(const int *)is_refused && action != SQLITE_PRAGMA ? SQLITE_DENY : SQLITE_OK;
}

void coffer_sqlite_guard_compilation(void *connection, const int *is_refused) {
  sqlite3_set_authorizer((sqlite3 *)connection, is_refused == NULL ? NULL : authorize, (void *)is_refused);
}

int coffer_sqlite_keep_log(void *connection) {
  return sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

void coffer_sqlite_remove_hooks(void *connection) {
  sqlite3_commit_hook((sqlite3 *)connection, NULL, NULL);
  sqlite3_rollback_hook((sqlite3 *)connection, NULL, NULL);
  sqlite3_update_hook((sqlite3 *)connection, NULL, NULL);
}

static int count_log(void *page_count, sqlite3 *connection, const char *name, int pages) {
  *(int *)page_count = pages;
  return SQLITE_OK;
}

void coffer_sqlite_count_log(void *connection, int *page_count) {
  // The only hook there is for the log: so SQLite's own, which would copy it, goes.
  sqlite3_wal_hook((sqlite3 *)connection, page_count == NULL ? NULL : count_log, page_count);
}

int coffer_sqlite_is_of_one_process(void *connection) {
  char *name = NULL;
  if (sqlite3_file_control((sqlite3 *)connection, "main", SQLITE_FCNTL_VFSNAME, &name) != SQLITE_OK) return 0;
  // Where a layer is above it, the names of all of them, with slashes between.
  int result = name != NULL && strstr(name, "unix-excl") != NULL;
  sqlite3_free(name);
  return result;
}

int coffer_sqlite_is_in_place(void *connection) {
  int has_moved = 0;
  int result = sqlite3_file_control((sqlite3 *)connection, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  return result == SQLITE_OK && !has_moved;
}

const void *coffer_sqlite_log_index(void *connection) {
  // Of the size that SQLite asks for when it reads the log.
  enum { region_size = 32768 };
  sqlite3_file *file = NULL;
  void volatile *region = NULL;
  if (sqlite3_file_control((sqlite3 *)connection, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK) return NULL;
  if (file == NULL || file->pMethods == NULL || file->pMethods->iVersion < 2) return NULL;
  if (file->pMethods->xShmMap(file, 0, region_size, 0, &region) != SQLITE_OK) return NULL;
  return (const void *)region;
}

// The write-ahead log's file, or NULL.
static sqlite3_file *log_file(sqlite3 *connection) {
  sqlite3_file *log = NULL;
  // In this journal mode the journal is the log.
  if (sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK) return NULL;
  return log == NULL || log->pMethods == NULL ? NULL : log;
}

long long coffer_sqlite_size(void *connection) {
  sqlite3_file *file = NULL;
  sqlite3_int64 size = 0;
  if (sqlite3_file_control((sqlite3 *)connection, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK) return 0;
  if (file == NULL || file->pMethods == NULL || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return 0;
  return size;
}

long long coffer_sqlite_log_size(void *connection) {
  sqlite3_file *log = log_file((sqlite3 *)connection);
  sqlite3_int64 size = 0;
  if (log == NULL || log->pMethods->xFileSize(log, &size) != SQLITE_OK) return 0;
  return size;
}

// Whether the last failure of a write to the log was that a quota is used up. SQLite knows a full disk by ENOSPC alone.
static int is_over_quota(sqlite3 *connection) {
  sqlite3_file *log = log_file(connection);
  int number = 0;
  if (log == NULL || log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number) != SQLITE_OK) return 0;
  return number == EDQUOT;
}

int coffer_sqlite_bind_blob(void *statement, int parameter, const void *bytes, int count) {
  return sqlite3_bind_blob((sqlite3_stmt *)statement, parameter, bytes, count, SQLITE_STATIC);
}

int coffer_sqlite_bind_integer(void *statement, int parameter, long long value) {
  return sqlite3_bind_int64((sqlite3_stmt *)statement, parameter, value);
}

int coffer_sqlite_step(void *statement) {
  int result = sqlite3_step((sqlite3_stmt *)statement);
  if (result == SQLITE_ROW || result == SQLITE_DONE) return result;
  sqlite3 *connection = sqlite3_db_handle((sqlite3_stmt *)statement);
  result = sqlite3_extended_errcode(connection);
  // After both SQLite has ended the transaction in the same way.
  return result == SQLITE_IOERR_WRITE && is_over_quota(connection) ? SQLITE_FULL : result;
}

void coffer_sqlite_reset(void *statement) {
  sqlite3_reset((sqlite3_stmt *)statement);
  sqlite3_clear_bindings((sqlite3_stmt *)statement);
}

const void *coffer_sqlite_column_blob(void *statement, int column, int *count) {
  static const char empty = 0;
  *count = 0;
  if (sqlite3_column_type((sqlite3_stmt *)statement, column) != SQLITE_BLOB) return NULL;
  const void *bytes = sqlite3_column_blob((sqlite3_stmt *)statement, column);
  *count = sqlite3_column_bytes((sqlite3_stmt *)statement, column);
  return *count == 0 ? &empty : bytes;
}

long long coffer_sqlite_column_integer(void *statement, int column) {
  return sqlite3_column_int64((sqlite3_stmt *)statement, column);
}
