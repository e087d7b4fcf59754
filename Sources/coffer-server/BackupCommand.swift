internal import ArgumentParser
internal import CofferServer
internal import CofferServerSQLite
internal import CofferSystem

/// `coffer-server backup`.
struct BackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copies the store to a file at one moment, also while the server runs.",
    discussion: """
      The copy does not hold server.key, without which it signs nothing and lets nobody in: keep that elsewhere. To \
      restore, use coffer-server restore.

      Example:
        coffer-server backup /backups/coffer-monday.sqlite --data /var/lib/coffer
      """)

  @Argument(help: "The file to make; it must not be there.") var file: String
  @OptionGroup var data: DataOptions

  func run() async throws {
    try await Failure.reporting {
      try ProcessHardening.apply()
      let directory = try DataDirectory(try data.resolved(), creating: false)
      let store = try SQLitePolicyStore(directory)
      try await store.backup(to: file)
      try store.close()
    }
  }
}

/// `coffer-server restore`.
struct RestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Makes a data directory of a backup and its server.key.",
    discussion: """
      Devices refuse revisions that are older than what they have applied: after an older backup, change something \
      until the revision is beyond theirs, or rotate the keys, which begins a new epoch.

      Example:
        coffer-server restore /backups/coffer-monday.sqlite --server-key /safe/server.key --data /var/lib/coffer
      """)

  @Argument(help: "The backup.") var file: String
  @Option(help: "The server key that belongs to it.") var serverKey: String
  @OptionGroup var data: DataOptions

  func run() async throws {
    try await Failure.reporting {
      try ProcessHardening.apply()
      let directory = try DataDirectory.restore(try data.resolved(), database: file, serverKey: serverKey)
      // Opening verifies that store and key belong together, and that this version can read it.
      do {
        try SQLitePolicyStore(directory).close()
      } catch let error as StoreError where error.isForGood {
        directory.undoRestoration()
        throw error
      }
    }
  }
}
