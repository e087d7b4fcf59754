#include "CSQLiteConfiguration.h"

#include <sqlite3.h>
#include <stddef.h>

int coffer_sqlite_defend(void *connection) {
  int result = sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  if (result != SQLITE_OK) return result;
  return sqlite3_db_config((sqlite3 *)connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
}
