internal import CofferCrypto
public import CofferServer
internal import CofferSystem
internal import Foundation
internal import GRDB

/// The policy store in one SQLite file.
///
/// Write-ahead log with `synchronous=FULL`: what a write returned is on the disk. Several processes may use the file at
/// once; each waits up to ``busyTimeout`` seconds for another's write.
public final class SQLitePolicyStore: PolicyStore {
  public static let busyTimeout = 10.0
  private let pool: DatabasePool
  /// A connection that writes nothing, so that every commit is somebody else's to it.
  private let observer: DatabaseQueue

  /// Opens the store of a data directory, makes it if it is not there, and brings its tables up to this version.
  ///
  /// Throws ``StoreError``, or `SystemError` when the file cannot be made.
  ///
  /// - Parameters:
  ///   - busyTimeout: seconds to wait for another process's write.
  ///   - isVerified: whether the whole file is looked through first, and refused where it is not sound. That reads all of it.
  public init(
    _ directory: DataDirectory, busyTimeout: Double = SQLitePolicyStore.busyTimeout, isVerified: Bool = false
  ) throws {
    try Self.makeFile(at: directory.database)
    (pool, observer) = try translatingStoreErrors {
      let pool = try DatabasePool(path: directory.database, configuration: Self.configuration(busyTimeout))
      try pool.writeWithoutTransaction(Self.demandDurability)
      if isVerified { try pool.read(Self.demandSoundness) }
      try Schema.migrate(pool)
      try pool.write { try Self.demand(directory.serverKey, in: $0) }
      return (pool, try DatabaseQueue(path: directory.database, configuration: Self.configuration(busyTimeout)))
    }
  }

  /// Makes the file where there is none, for its owner alone: SQLite gives its other files the permissions of this one.
  ///
  /// It is closed before SQLite opens it, and not opened where it is there: closing any descriptor of a file takes all the
  /// locks that the process has on it (fcntl(2)), without which the next program that closes the store removes the log
  /// under this one.
  private static func makeFile(at path: String) throws {
    let files = FileSystem()
    if let found = try files.status(of: path) {
      guard found.kind == .file else { throw StoreError.damagedFile }
      guard found.permissions & 0o077 != 0 else { return }
    }
    try files.open(path, [.readWrite, .create, .noFollow], permissions: 0o600).setPermissions(0o600)
  }

  public func version() throws -> Int64 {
    try translatingStoreErrors {
      // Without a transaction: the statement looks at the log's index, and reads nothing.
      let version = try observer.unsafeRead { database in
        try Int64.fetchOne(database.cachedStatement(sql: "PRAGMA data_version"))
      }
      guard let version else { throw StoreError.unavailable(code: Int(ResultCode.SQLITE_MISUSE.rawValue)) }
      return version
    }
  }

  public func read<Value: Sendable>(
    _ body: @Sendable (any StoreTransaction) throws -> Value
  ) async throws -> Value {
    do { return try await pool.read { try body(SQLiteTransaction(database: $0)) } } catch { throw translated(error) }
  }

  public func write<Value: Sendable>(
    _ body: @Sendable (any StoreTransaction) throws -> Value
  ) async throws -> Value {
    do { return try await pool.write { try body(SQLiteTransaction(database: $0)) } } catch { throw translated(error) }
  }

  /// Copies everything, as it is at one moment, to a new file, and makes it durable. Others go on meanwhile.
  ///
  /// Throws ``StoreError``, `ServerError.backupExists`, and `SystemError`.
  public func backup(to path: String) async throws {
    let files = FileSystem()
    guard try files.status(of: path) == nil else { throw ServerError.backupExists }
    // Nobody else may read it, from the first byte on.
    let file = try files.open(path, [.readWrite, .createNew, .noFollow], permissions: 0o600)
    do {
      let copy = try translatingStoreErrors { try DatabaseQueue(path: path) }
      try translatingStoreErrors {
        try pool.backup(to: copy)
        try copy.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = DELETE") }
        try copy.close()
      }
      try file.sync()
      let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
      try files.open(parent, .directory).sync()
    } catch {
      _ = try? files.unlink(path)
      throw error
    }
  }

  /// Closes the file. Every later call throws ``StoreError``.
  public func close() throws {
    try translatingStoreErrors {
      // So that the one file holds everything; when another process has it open, that one's close will do.
      _ = try? pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
      try observer.close()
      try pool.close()
    }
  }

  private static func configuration(_ busyTimeout: Double) -> Configuration {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = true
    configuration.busyMode = .timeout(busyTimeout)
    configuration.prepareDatabase { database in
      try database.execute(sql: "PRAGMA trusted_schema = OFF")
      try database.execute(sql: "PRAGMA secure_delete = ON")
      try database.execute(sql: "PRAGMA temp_store = MEMORY")
    }
    return configuration
  }

  /// The pool lowers `synchronous` to NORMAL when it turns on the write-ahead log: a power cut could then take back a
  /// revision that devices have applied.
  private static func demandDurability(_ database: Database) throws {
    try database.execute(sql: "PRAGMA synchronous = FULL")
    guard try Int.fetchOne(database, sql: "PRAGMA synchronous") == 2,
      try String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal",
      try Bool.fetchOne(database, sql: "PRAGMA foreign_keys") == true
    else { throw StoreError.unavailable(code: Int(ResultCode.SQLITE_MISUSE.rawValue)) }
  }

  private static func demandSoundness(_ database: Database) throws {
    guard try String.fetchOne(database, sql: "PRAGMA quick_check(1)") == "ok" else { throw StoreError.damagedFile }
  }

  /// Binds a new store to its server key, and refuses another key ever after.
  private static func demand(_ key: SecretKey, in database: Database) throws {
    try database.execute(
      sql: "INSERT INTO server (id, key_commitment) VALUES (1, ?) ON CONFLICT DO NOTHING",
      arguments: [Data(key.commitment)])
    let stored = try Data.fetchOne(database, sql: "SELECT key_commitment FROM server WHERE id = 1")
    guard let stored, equalInConstantTime(Array(stored), key.commitment) else { throw StoreError.foreignServerKey }
  }
}
