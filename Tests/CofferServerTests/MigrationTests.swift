import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServer
import CofferSystem
import CofferTestSupport
import Foundation
import GRDB
import Testing

@testable import CofferServerSQLite

/// A store of the first version, opened by this one.
@Suite struct MigrationTests {
  static let app = AppApproval(
    id: "a", name: "Acme", identity: AppIdentity(bundleId: "com.acme.editor", teamId: "ACME"), teamKey: nil,
    tier: .filtered, extensions: ["pdf"], actions: [.view])

  /// The first version's tables, with a row in each that an upgrade must keep.
  static func makeFirst(_ directory: DataDirectory) throws {
    let queue = try DatabaseQueue(path: directory.database)
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1") { try $0.execute(sql: Schema.first) }
    try migrator.migrate(queue)
    try queue.write { database in
      let key = Data(SigningKey().verifyingKey.bytes)
      try database.execute(
        sql: "INSERT INTO server (id, key_commitment) VALUES (1, ?)", arguments: [Data(directory.serverKey.commitment)])
      try database.execute(
        sql: """
          INSERT INTO tenant (id, name, root_key, sealed_root_key, signing_key, sealed_signing_key, key_epoch, keyset,
            keyset_not_after, settings, created_at)
          VALUES ('t', 'Acme', ?, x'00', ?, x'00', 1, 'k', 2, '{"allowFilteredTier":true,"ownerActions":["view"]}', 1)
          """, arguments: [key, key])
      try database.execute(
        sql: "INSERT INTO api_token VALUES (x'01', 'token', 't', 'editor', 1, 9)")
      try database.execute(
        sql: "INSERT INTO administrator VALUES ('p', 't', 'a@b', 'owner', 14, 8, 1, ?, x'02', 1)",
        arguments: [Data(repeating: 1, count: 16)])
      let json = String(decoding: try JSONEncoder().encode(Self.app), as: UTF8.self)
      try database.execute(
        sql:
          "INSERT INTO app (tenant, id, bundle_id, team_id, approval) VALUES ('t', 'a', 'com.acme.editor', 'ACME', ?)",
        arguments: [json])
      try database.execute(sql: "INSERT INTO enrollment VALUES (x'03', 'e', 't', 1, 2, 1)")
      try database.execute(sql: "INSERT INTO device VALUES ('d', 't', ?, 'kid', 'linux', 'e', 5)", arguments: [key])
      try database.execute(sql: "INSERT INTO revision VALUES ('t', 7, 'bundle', 'digest', 1, 1, 2)")
    }
    try queue.close()
  }

  /// - Parameter isUntouched: whether nobody has worked with the store since.
  static func verify(_ store: SQLitePolicyStore, isUntouched: Bool = true) async throws {
    try await store.read { transaction in
      let tenant = try #require(try transaction.tenant(name: "Acme"))
      #expect(tenant.settings == Settings(ownerActions: [.view], allowFilteredTier: true))
      #expect(tenant.grace == .initial && !tenant.needsTwoApprovers && tenant.delegations.isEmpty)
      let token = try #require(try transaction.apiToken(hash: [1]))
      #expect(token.permissions == Role.editor.permissions && token.expiresAt == 9)
      let person = try #require(try transaction.administrator(tenant: "t", email: "A@B"))
      #expect(person.sealedOneTimeSecret == nil && person.role == .owner)
      #expect(try transaction.apps(tenant: "t") == [Self.app])
      #expect(try transaction.appRecord(tenant: "t", id: "a")?.state == .approved)
      #expect(try transaction.devices(tenant: "t").map(\.id) == ["d"])
      #expect(try transaction.deviceState(tenant: "t", id: "d")?.groups == [])
      #expect(try transaction.currentRevision(tenant: "t")?.number == 7)
      if isUntouched { #expect(try transaction.lastAuditRecord(tenant: "t") == nil) }
    }
  }

  @Test func `what was there is there, and means the same`() async throws {
    let folder = try TemporaryFolder()
    let directory = try DataDirectory(folder("data"), creating: true)
    try Self.makeFirst(directory)
    for _ in 0..<2 {
      let store = try SQLitePolicyStore(directory)
      try await Self.verify(store)
      try store.close()
    }
  }

  @Test func `an upgrade that is cut short is begun again`() async throws {
    let folder = try TemporaryFolder()
    let directory = try DataDirectory(folder("data"), creating: true)
    try Self.makeFirst(directory)
    // Where the last statement fails, nothing of the step is left.
    let queue = try DatabaseQueue(path: directory.database)
    try await queue.write { try $0.execute(sql: "CREATE TABLE device_decision (x)") }
    try queue.close()
    #expect(throws: StoreError.self) { try SQLitePolicyStore(directory) }
    let again = try DatabaseQueue(path: directory.database)
    try await again.write { database in
      #expect(try !database.tableExists("session"))
      try database.execute(sql: "DROP TABLE device_decision")
    }
    try again.close()
    let store = try SQLitePolicyStore(directory)
    try await Self.verify(store)
    try store.close()
  }

  @Test func `who made what is taken from the audit`() async throws {
    let folder = try TemporaryFolder()
    let directory = try DataDirectory(folder("data"), creating: true)
    try Self.makeFirst(directory)
    let queue = try DatabaseQueue(path: directory.database)
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1") { try $0.execute(sql: Schema.first) }
    migrator.registerMigration("2") { try $0.execute(sql: Schema.second) }
    try migrator.migrate(queue)
    let entry = AuditEntry(
      number: 1, time: 1, tenant: "t", actor: .administrator("p"), action: .tokenCreated, subject: "token",
      details: [:])
    try await queue.write { database in
      try database.execute(
        sql: "INSERT INTO audit VALUES ('t', 1, ?, x'00')", arguments: [Data(entry.canonical)])
      try database.execute(sql: "INSERT INTO invitation VALUES (x'09', 'i', 't', 'c@d', 'owner', 1, 9)")
    }
    try queue.close()
    let store = try SQLitePolicyStore(directory)
    let token = try await store.read { try $0.apiToken(tenant: "t", id: "token") }
    let invitation = try await store.read { try $0.invitation(tenant: "t", id: "i") }
    #expect(token?.createdBy == "administrator:p")
    #expect(invitation?.role == .owner && invitation?.createdBy == nil)
    try store.close()
  }

  @Test func `orders are numbered for each device`() async throws {
    let folder = try TemporaryFolder()
    let directory = try DataDirectory(folder("data"), creating: true)
    try Self.makeFirst(directory)
    let queue = try DatabaseQueue(path: directory.database)
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1") { try $0.execute(sql: Schema.first) }
    migrator.registerMigration("2") { try $0.execute(sql: Schema.second) }
    migrator.registerMigration("3") { try $0.execute(sql: Schema.third) }
    try migrator.migrate(queue)
    try await queue.write { database in
      for (id, device) in [("1", "d"), ("2", "e"), ("3", "d"), ("4", "e"), ("5", "d")] {
        try database.execute(
          sql: """
            INSERT INTO command (id, tenant, device, kind, state, document, created_by, created_at, expires_at)
            VALUES (?, 't', ?, 'lock', 'pending', 'x', 'operator', 1, 9)
            """, arguments: [id, device])
      }
    }
    try queue.close()
    let store = try SQLitePolicyStore(directory)
    let order = DeviceCommand(tenant: "t", audience: "e", id: "6", kind: .lock, issuedAt: 1, notAfter: 9)
    let numbers = try await store.write { transaction in
      [
        try transaction.lastCommandNumber(tenant: "t", device: "d"),
        try transaction.lastCommandNumber(tenant: "t", device: "e"),
        try transaction.insert(CommandRecord(command: order, document: "x", createdBy: "operator")),
        try transaction.replaceDocument(of: order, by: "y"),
        try transaction.lastCommandNumber(tenant: "t", device: "d"),
      ]
    }
    #expect(numbers == [3, 2, 3, 4, 3])
    try store.close()
  }
}
