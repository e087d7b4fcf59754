internal import CSQLiteAccess
internal import CofferSystem
internal import Foundation
internal import GRDB

/// Opens `index.sqlite` so that what is written there is durable, and what is found there is trusted with nothing.
enum IndexDatabase {
  /// "Coff", in the header's application id.
  private static let applicationID = 0x436f_6666

  /// Measured with rows of 300 to 2,700 bytes: 4 KiB pages waste half a page on the larger ones.
  static let pageSize = 8192

  /// `record` has row ids and an index, because values of a kilobyte in a clustered table overflow onto pages of their
  /// own; `entry` is clustered, because a folder is read in one run.
  private static let schema = [
    "CREATE TABLE bucket(id INTEGER PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE entry(key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE record(key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)",
    "CREATE TABLE root(id INTEGER PRIMARY KEY CHECK (id = 1), value BLOB NOT NULL)",
    "CREATE TABLE salt(id INTEGER PRIMARY KEY, value BLOB NOT NULL)",
  ]

  static func create(at path: String) throws {
    let queue = try open(path, .create)
    try queue.inDatabase { db in
      try db.inTransaction {
        for statement in schema { try db.execute(sql: statement) }
        return .commit
      }
    }
    try queue.close()
  }

  /// Opens an index whose schema is exactly the one that this version makes.
  static func open(at path: String) throws -> DatabaseQueue {
    let queue = try open(path, .write)
    try queue.inDatabase { db in
      try requireSchema(db)
      // From here on nobody else has it open but readers of this process. One that finds SQLite in the midst of noting a commit has the
      // writer's place for a moment, and goes on as soon as the process does.
      try db.execute(sql: "PRAGMA busy_timeout = 60000")
    }
    return queue
  }

  /// Opens one more connection to an index that is open already, which reads beside it.
  static func openReader(at path: String, _ memory: Memory) throws -> DatabaseQueue {
    let queue = try open(path, .read(memory))
    try queue.inDatabase { try requireSchema($0) }
    return queue
  }

  /// Opens a new file into which an index is to be copied. Whoever asks for that syncs it: here somebody may wait.
  static func openCopy(at path: String) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.leaveMemoryToOwner()
    configuration.prepareDatabase { db in
      try defend(db)
      try db.execute(sql: "PRAGMA synchronous = OFF")
    }
    return try DatabaseQueue(path: uri(path, .create), configuration: configuration)
  }

  /// Whether the connection has the file open that its path leads to.
  static func isInPlace(_ db: Database) -> Bool {
    db.sqliteConnection.map { coffer_sqlite_is_in_place(UnsafeMutableRawPointer($0)) != 0 } ?? false
  }

  /// Throws where the schema is not exactly the one that this version makes.
  static func requireSchema(_ db: Database) throws {
    let found = try String.fetchAll(db, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
    guard found == schema else { throw VaultError.damaged(what: "the index's schema") }
  }

  @discardableResult private static func defend(_ db: Database) throws -> UnsafeMutableRawPointer {
    guard let connection = db.sqliteConnection.map({ UnsafeMutableRawPointer($0) }),
      coffer_sqlite_defend(connection) == 0
    else { throw VaultError.damaged(what: "the index cannot be opened defensively") }
    return connection
  }

  /// What a connection may keep of the index's pages: 512 KiB, 2 MiB or 4.
  enum Memory: String, Sendable {
    case little = "PRAGMA cache_size = -512"
    case usual = "PRAGMA cache_size = -2048"
    case ample = "PRAGMA cache_size = -4096"
  }

  private enum Purpose {
    case create, write
    case read(Memory)

    var isCreation: Bool { if case .create = self { true } else { false } }
  }

  private static func open(_ path: String, _ purpose: Purpose) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    // Transactions are begun and ended by statements that run past GRDB.
    configuration.allowsUnsafeTransactions = true
    // Another process may have the file open, which is not waited for long.
    configuration.busyMode = .timeout(1)
    configuration.leaveMemoryToOwner()
    configuration.prepareDatabase { db in
      let connection = try defend(db)
      // One process holds the vault's lock. Its connections share what they know of the log in its memory, so that the index needs no
      // file for that, which others could write to.
      guard coffer_sqlite_is_of_one_process(connection) != 0 else {
        throw VaultError.damaged(what: "the index cannot be opened for one process alone")
      }
      if purpose.isCreation {
        try db.execute(sql: "PRAGMA page_size = 8192")
        try db.execute(sql: "PRAGMA application_id = 1131374182")
      }
      try db.execute(sql: "PRAGMA journal_mode = WAL")
      try db.execute(sql: "PRAGMA synchronous = FULL")
      try db.execute(sql: "PRAGMA secure_delete = ON")
      try db.execute(sql: "PRAGMA temp_store = MEMORY")
      // More than the log has between two checkpoints (1,000 pages): to cut it and let it grow again is work of the disk's.
      try db.execute(sql: "PRAGMA journal_size_limit = 16777216")
      if case .read(let memory) = purpose {
        // It may be the only one that has the file at this path open, where somebody has put another there.
        guard coffer_sqlite_keep_log(connection) == 0 else {
          throw VaultError.damaged(what: "the index cannot be opened for reading alone")
        }
        try db.execute(sql: memory.rawValue)
        try db.execute(sql: "PRAGMA query_only = ON")
      } else {
        try db.execute(sql: Memory.usual.rawValue)
      }
      // Slots are used again as soon as a commit is durable, so a commit that is not would corrupt: assert it.
      guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2,
        try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal",
        try Int.fetchOne(db, sql: "PRAGMA page_size") == pageSize,
        try Int.fetchOne(db, sql: "PRAGMA application_id") == applicationID
      else { throw VaultError.damaged(what: "the index's settings") }
    }
    return try DatabaseQueue(path: uri(path, purpose), configuration: configuration)
  }

  /// What the connections of one index have in common, and those of no other: its log's index in memory.
  struct Identity: Equatable {
    private let logIndex: UnsafeRawPointer

    /// - Parameter db: a connection that has read something.
    init(_ db: Database) throws {
      guard let connection = db.sqliteConnection,
        let logIndex = coffer_sqlite_log_index(UnsafeMutableRawPointer(connection))
      else { throw VaultError.damaged(what: "the index's log") }
      self.logIndex = logIndex
    }
  }

  /// With SQLite's layer for the files of a single process, which it looks for in a URI where it was built with `SQLITE_USE_URI`, as
  /// Debian's is. None is made where none is to be made.
  private static func uri(_ path: String, _ purpose: Purpose) throws -> String {
    guard let path = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) else {
      throw VaultError.damaged(what: "the path of the index")
    }
    let options = purpose.isCreation ? "?vfs=unix-excl&mode=rwc" : "?vfs=unix-excl&mode=rw"
    // An absolute path may begin with more than one slash, which would name a host.
    return (path.hasPrefix("/") ? "file://" : "file:") + path + options
  }
}
