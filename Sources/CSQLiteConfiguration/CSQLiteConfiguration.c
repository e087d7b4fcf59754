#include "CSQLiteConfiguration.h"

#include <sqlite3.h>
#include <stddef.h>

int coffer_sqlite_defend(void *connection) {
  int result = sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  if (result != SQLITE_OK) return result;
  // No row that Coffer writes is larger; one that somebody else wrote is refused before it is read into memory.
  sqlite3_limit((sqlite3 *)connection, SQLITE_LIMIT_LENGTH, 16 << 20);
  return sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
}
