internal import CSQLiteAccess
internal import GRDB

/// Keeps a connection from compiling SQL once all that it runs is prepared, but for pragmas.
///
/// Where the schema is not the one that it knows, SQLite compiles a prepared statement again when it is run. Whoever can write to the index's
/// file can bring that about, at any time, and what runs then is theirs: a table may have become a view without an end. A connection on which
/// that was refused reads nothing more.
///
/// Takes the place of GRDB's own look at what is compiled, which serves its observers.
final class CompilationGuard {
  private let connection: UnsafeMutableRawPointer
  private let isRefused: UnsafeMutablePointer<CInt>

  private init(_ connection: UnsafeMutableRawPointer) {
    self.connection = connection
    isRefused = .allocate(capacity: 1)
    isRefused.initialize(to: 0)
    coffer_sqlite_guard_compilation(connection, isRefused)
  }

  deinit { isRefused.deallocate() }

  /// Lets the connection compile what `prepare` does, and nothing afterwards.
  static func around<Prepared>(
    _ db: Database, _ prepare: () throws -> Prepared
  ) throws -> (guard: CompilationGuard, prepared: Prepared) {
    guard let connection = db.sqliteConnection else { throw VaultError.damaged(what: "the index") }
    let compilation = CompilationGuard(UnsafeMutableRawPointer(connection))
    do {
      let prepared = try prepare()
      compilation.isRefused.pointee = 1
      return (compilation, prepared)
    } catch {
      compilation.end()
      throw error
    }
  }

  /// Leaves the connection as it was. Called before it is closed, or ends.
  func end() { coffer_sqlite_guard_compilation(connection, nil) }
}
