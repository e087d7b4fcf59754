internal import CofferServer
internal import GRDB

/// The tables, and the steps from each version to the next.
enum Schema {
  /// Brings the file up to this version. Two processes may do so at once.
  static func migrate(_ pool: DatabasePool) throws {
    guard try !pool.read(migrator.hasBeenSuperseded) else { throw StoreError.newerFormat }
    while true {
      let applied = try pool.read(migrator.appliedIdentifiers).count
      do {
        return try migrator.migrate(pool)
      } catch {
        // Another process may have been faster with a step; the ones behind it are still to be done, by either.
        guard try pool.read(migrator.appliedIdentifiers).count > applied else { throw error }
      }
    }
  }

  private static var migrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1") { try $0.execute(sql: first) }
    migrator.registerMigration("2") { try $0.execute(sql: second) }
    migrator.registerMigration("3") { try $0.execute(sql: third) }
    migrator.registerMigration("4") { try $0.execute(sql: fourth) }
    migrator.registerMigration("5") { try $0.execute(sql: fifth) }
    migrator.registerMigration("6") { try $0.execute(sql: sixth) }
    migrator.registerMigration("7") { try $0.execute(sql: seventh) }
    return migrator
  }

  /// Times are seconds since 1970. Private keys are sealed, secrets that callers hold are hashed.
  static let first = """
    CREATE TABLE server (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      key_commitment BLOB NOT NULL
    ) STRICT;

    CREATE TABLE tenant (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      root_key BLOB NOT NULL,
      sealed_root_key BLOB NOT NULL,
      signing_key BLOB NOT NULL,
      sealed_signing_key BLOB NOT NULL,
      key_epoch INTEGER NOT NULL,
      keyset TEXT NOT NULL,
      keyset_not_after INTEGER NOT NULL,
      settings TEXT NOT NULL,
      created_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE administrator (
      id TEXT PRIMARY KEY,
      tenant TEXT NOT NULL REFERENCES tenant,
      email TEXT NOT NULL COLLATE NOCASE,
      role TEXT NOT NULL,
      password_cost INTEGER NOT NULL,
      password_block_size INTEGER NOT NULL,
      password_parallelism INTEGER NOT NULL,
      password_salt BLOB NOT NULL,
      password_commitment BLOB NOT NULL,
      created_at INTEGER NOT NULL,
      UNIQUE (tenant, email)
    ) STRICT;

    CREATE TABLE api_token (
      hash BLOB PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      tenant TEXT NOT NULL REFERENCES tenant,
      role TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE app (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      tenant TEXT NOT NULL REFERENCES tenant,
      id TEXT NOT NULL,
      bundle_id TEXT NOT NULL,
      team_id TEXT NOT NULL,
      approval TEXT NOT NULL,
      UNIQUE (tenant, id),
      UNIQUE (tenant, bundle_id, team_id)
    ) STRICT;

    CREATE TABLE enrollment (
      hash BLOB PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      tenant TEXT NOT NULL REFERENCES tenant,
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      used INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    CREATE TABLE device (
      id TEXT PRIMARY KEY,
      tenant TEXT NOT NULL REFERENCES tenant,
      key BLOB NOT NULL,
      key_id TEXT NOT NULL,
      platform TEXT,
      enrollment TEXT NOT NULL UNIQUE REFERENCES enrollment (id),
      enrolled_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX device_by_tenant ON device (tenant, enrolled_at);
    CREATE INDEX device_by_key ON device (key_id);

    CREATE TABLE device_token (
      hash BLOB PRIMARY KEY,
      device TEXT NOT NULL REFERENCES device ON DELETE CASCADE,
      expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX device_token_by_device ON device_token (device, expires_at);

    CREATE TABLE assertion (
      device TEXT NOT NULL REFERENCES device ON DELETE CASCADE,
      id TEXT NOT NULL,
      expires_at INTEGER NOT NULL,
      PRIMARY KEY (device, id)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE revision (
      tenant TEXT NOT NULL REFERENCES tenant,
      number INTEGER NOT NULL,
      bundle TEXT NOT NULL,
      digest TEXT NOT NULL,
      key_epoch INTEGER NOT NULL,
      issued_at INTEGER NOT NULL,
      not_after INTEGER NOT NULL,
      PRIMARY KEY (tenant, number)
    ) STRICT;
    """
}
