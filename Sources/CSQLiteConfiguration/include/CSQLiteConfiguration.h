// sqlite3_db_config takes variable arguments, which Swift cannot call.
#ifndef COFFER_SQLITE_CONFIGURATION_H
#define COFFER_SQLITE_CONFIGURATION_H

/// SQLITE_DBCONFIG_DEFENSIVE on and SQLITE_DBCONFIG_TRUSTED_SCHEMA off, values of at most 16 MiB. Returns an SQLite result code.
/// `connection` is a `sqlite3 *`.
int coffer_sqlite_defend(void *connection);

#endif
