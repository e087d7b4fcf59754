// What GRDB's interface lacks: options of variable arguments, and statements without a Swift object for each value.
#ifndef COFFER_SQLITE_ACCESS_H
#define COFFER_SQLITE_ACCESS_H

/// SQLITE_DBCONFIG_DEFENSIVE on, SQLITE_DBCONFIG_TRUSTED_SCHEMA off, neither views nor triggers, values of at most 16 MiB. Returns an
/// SQLite result code.
/// `connection` is a `sqlite3 *`.
int coffer_sqlite_defend(void *connection);

/// Has SQL compiled on the connection only while `*is_refused` is 0, but for pragmas: else it fails with SQLITE_AUTH. What is prepared
/// already is compiled once more when it is next run. `is_refused` must stay until the next call; NULL for no such thing. `connection`
/// is a `sqlite3 *`.
void coffer_sqlite_guard_compilation(void *connection, const int *is_refused);

/// Has the connection leave the write-ahead log as it is when it is closed, also as the last one. Returns an SQLite result code.
/// `connection` is a `sqlite3 *`.
int coffer_sqlite_keep_log(void *connection);

/// Takes away the hooks on transactions that GRDB sets for its observers: they hold when transactions go through GRDB.
/// `connection` is a `sqlite3 *`.
void coffer_sqlite_remove_hooks(void *connection);

/// Lets no commit copy the write-ahead log into the database, and each write the number of the log's pages to `page_count`, which
/// must stay until the next call; NULL for nothing. `connection` is a `sqlite3 *`.
void coffer_sqlite_count_log(void *connection, int *page_count);

/// Whether the connection keeps its index of the write-ahead log in memory that connections of this process share, and lets those of
/// no other in (SQLite's "unix-excl"): not 0. `connection` is a `sqlite3 *`.
int coffer_sqlite_is_of_one_process(void *connection);

/// Whether the file that the connection has open is the one at the path that it was opened by: not 0. `connection` is a `sqlite3 *`.
int coffer_sqlite_is_in_place(void *connection);

/// Where the connection has its index of the write-ahead log in memory: connections of one process have the same place if, and only if, they
/// have the same file open. NULL where there is none before anything was read. `connection` is a `sqlite3 *`.
const void *coffer_sqlite_log_index(void *connection);

/// The length of the database's file, without what the write-ahead log has yet to add to it, in bytes. `connection` is a
/// `sqlite3 *`.
long long coffer_sqlite_size(void *connection);

/// The length of the write-ahead log's file, in bytes; 0 where there is none. `connection` is a `sqlite3 *`.
long long coffer_sqlite_log_size(void *connection);

// In the following, `statement` is a `sqlite3_stmt *`, parameters count from 1 and columns from 0.

/// Binds a blob without copying it: it must stay until the statement is reset. Returns an SQLite result code.
int coffer_sqlite_bind_blob(void *statement, int parameter, const void *bytes, int count);
int coffer_sqlite_bind_integer(void *statement, int parameter, long long value);
/// SQLITE_ROW (100), SQLITE_DONE (101) or an extended error code. A quota that is used up is SQLITE_FULL, like a full disk.
int coffer_sqlite_step(void *statement);
/// Makes the statement ready to be bound and stepped again.
void coffer_sqlite_reset(void *statement);
/// A column's bytes until the next step or reset; NULL where it is not a blob, or out of memory.
const void *coffer_sqlite_column_blob(void *statement, int column, int *count);
/// A column's number.
long long coffer_sqlite_column_integer(void *statement, int column);

#endif
