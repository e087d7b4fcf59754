import CofferServer
import CofferSystem
import CofferTestSupport
import Foundation
import GRDB
import Glibc
import Testing

@testable import CofferServerSQLite

/// The real program, killed while it brings an old store up.
@Suite struct MigrationKillTests {
  /// A store of the first version in which an upgrade has something to do, and takes many pages.
  private static func makeLarge(_ directory: DataDirectory) throws {
    try MigrationTests.makeFirst(directory)
    let queue = try DatabaseQueue(path: directory.database)
    try queue.write { database in
      try database.execute(
        sql: """
          WITH RECURSIVE number(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM number WHERE value < 20000)
          INSERT INTO api_token SELECT randomblob(32), 'token ' || value, 't', 'editor', 1, 9 FROM number
          """)
    }
    try queue.close()
  }

  @Test func `an upgrade that is killed anywhere is finished by the next start`() async throws {
    let folder = try TemporaryFolder()
    let original = try DataDirectory(folder("original"), creating: true)
    try Self.makeLarge(original)
    let names = try FileManager.default.contentsOfDirectory(atPath: original.path)
    // The first one ends by itself, and tells how far an upgrade writes.
    var (length, cuts) = (0, 0)
    var round = 0
    while round <= 12 {
      let command = ServerCommand(folder: try TemporaryFolder())
      try FileManager.default.copyItem(atPath: original.path, toPath: command.data)
      #expect(try FileManager.default.contentsOfDirectory(atPath: command.data).sorted() == names.sorted())
      let log = command.data + "/coffer.sqlite-wal"
      let process = command.process(["token", "create", "--tenant", "Acme", "--role", "owner", "--data", command.data])
      try process.run()
      // As soon as so much of the upgrade is written.
      let limit = round == 0 ? Int.max : length * (round - 1) / 12
      var written = 0
      while process.isRunning && written <= limit {
        written = max(written, Self.size(of: log))
        sched_yield()
      }
      if process.isRunning {
        process.terminate(SIGKILL)
        cuts += 1
      }
      #expect([.killed(SIGKILL), .exited(0)].contains(process.waitUntilExit()))
      if round == 0 { length = written }
      try await Self.demandWhole(command)
      round += 1
    }
    #expect(length > 0 && cuts > 3, "\(length) bytes, \(cuts) cuts")
  }

  private static func size(of path: String) -> Int {
    let status = try? FileSystem().status(of: path)
    return Int(status?.byteCount ?? 0)
  }

  /// The next start finishes it, and what was there is there and means the same.
  private static func demandWhole(_ command: ServerCommand) async throws {
    let served = try await command.serving { url in
      let ready = try await DiskTests.send("GET", url + "/ready", token: nil)
      #expect(ready.status == 200)
    }
    #expect(served.code == 0)
    let store = try SQLitePolicyStore(DataDirectory(command.data, creating: false))
    try await MigrationTests.verify(store, isUntouched: false)
    try store.close()
    let queue = try DatabaseQueue(path: command.data + "/coffer.sqlite")
    let (tokens, versions, check) = try await queue.read { database in
      (
        try Int.fetchOne(database, sql: "SELECT count(*) FROM api_token WHERE id LIKE 'token %' AND name = ''"),
        try String.fetchAll(database, sql: "SELECT identifier FROM grdb_migrations ORDER BY identifier"),
        try String.fetchOne(database, sql: "PRAGMA integrity_check")
      )
    }
    #expect(tokens == 20_000 && versions == (1...7).map(String.init) && check == "ok")
    try queue.close()
  }
}
