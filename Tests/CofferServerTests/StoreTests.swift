import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import CofferTestSupport
import Foundation
import GRDB
import HTTPTypes
import Testing

@testable import CofferServer

/// The SQLite store and its folder.
@Suite struct StoreTests {
  static func permissions(_ path: String) throws -> UInt16 {
    try #require(try FileSystem().status(of: path)).permissions
  }

  @Test func `folder and files are for their owner only`() async throws {
    let harness = try Harness()
    _ = try await harness.company()
    #expect(try Self.permissions(harness.directory.path) == 0o700)
    let names = try FileManager.default.contentsOfDirectory(atPath: harness.directory.path)
    #expect(Set(names) == ["server.key", "coffer.sqlite", "coffer.sqlite-wal", "coffer.sqlite-shm"])
    for name in names { #expect(try Self.permissions(harness.directory.path + "/" + name) == 0o600) }
  }

  @Test func `an existing folder is closed to others`() async throws {
    let folder = try TemporaryFolder()
    let path = folder("data")
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    let store = try SQLitePolicyStore(DataDirectory(path, creating: true))
    #expect(try Self.permissions(path) == 0o700)
    try store.close()
    for (name, mode) in [("", 0o755), ("/coffer.sqlite", 0o644)] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path + name)
    }
    try SQLitePolicyStore(DataDirectory(path, creating: false)).close()
    #expect(try Self.permissions(path) == 0o700)
    #expect(try Self.permissions(path + "/coffer.sqlite") == 0o600)
  }

  @Test func `a folder that is something else is left alone`() throws {
    let folder = try TemporaryFolder()
    let path = folder("home")
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    try Data("x".utf8).write(to: URL(fileURLWithPath: path + "/letter.txt"))
    #expect(throws: ServerError.dataDirectoryNotEmpty) { try DataDirectory(path, creating: true) }
    #expect(try Self.permissions(path) == 0o755)
    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["letter.txt"])
    #expect(throws: (any Error).self) { try DataDirectory(path + "/letter.txt", creating: true) }
  }

  @Test func `without leave to create nothing is made`() throws {
    let folder = try TemporaryFolder()
    let path = folder("data")
    #expect(throws: ServerError.noDataDirectory) { try DataDirectory(path, creating: false) }
    #expect(!FileManager.default.fileExists(atPath: path))
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    #expect(throws: ServerError.noDataDirectory) { try DataDirectory(path, creating: false) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
  }

  @Test func `a server key that is missing, exposed, damaged or another's is refused`() async throws {
    let harness = try Harness()
    _ = try await harness.company()
    let path = harness.directory.path
    let key = path + "/server.key"
    try harness.store.close()
    let bytes = try Data(contentsOf: URL(fileURLWithPath: key))
    func write(_ data: Data, _ mode: Int) throws {
      try data.write(to: URL(fileURLWithPath: key))
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: key)
    }
    try write(bytes, 0o640)
    #expect(throws: ServerError.serverKeyExposed) { try DataDirectory(path, creating: true) }
    for wrong in [bytes.dropLast(), bytes + [0], Data()] {
      try write(wrong, 0o600)
      #expect(throws: ServerError.serverKeyDamaged) { try DataDirectory(path, creating: true) }
    }
    try write(Data(bytes.reversed()), 0o600)
    let foreign = try DataDirectory(path, creating: true)
    #expect(throws: StoreError.foreignServerKey) { try SQLitePolicyStore(foreign) }
    try FileManager.default.removeItem(atPath: key)
    #expect(throws: ServerError.serverKeyMissing) { try DataDirectory(path, creating: true) }
    #expect(!FileManager.default.fileExists(atPath: key))
    try write(bytes, 0o600)
    let store = try SQLitePolicyStore(DataDirectory(path, creating: false))
    #expect(try await store.read { try $0.tenant(name: "Acme") } != nil)
  }

  @Test func `what was written is there after opening again`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let item = try await company.add()
    let before = try await harness.current(company.tenant)
    try harness.store.close()
    // Closed, everything is in the one file.
    let size = try FileSystem().status(of: harness.directory.database + "-wal")?.byteCount ?? 0
    #expect(size == 0)
    let store = try SQLitePolicyStore(DataDirectory(harness.directory.path, creating: false))
    #expect(try await store.read { try $0.apps(tenant: company.tenant.id) }.map(\.id) == [item.id])
    let after = try await store.read { try $0.currentRevision(tenant: company.tenant.id) }
    #expect(after?.digest == before.digest)
  }

  @Test func `a write that throws leaves nothing`() async throws {
    struct Stop: Error {}
    let harness = try Harness()
    let company = try await harness.company()
    await #expect(throws: Stop.self) {
      try await harness.store.write { transaction in
        let token = APIToken(
          id: "x", tenant: company.tenant.id, role: .owner, createdAt: 0, expiresAt: .max, createdBy: nil)
        try transaction.insert(token, hash: [1])
        throw Stop()
      }
    }
    #expect(try await harness.store.read { try $0.apiToken(hash: [1]) } == nil)
  }

  @Test func `a read cannot change`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    await #expect(throws: StoreError.self) {
      _ = try await harness.store.read { try $0.deleteApp(tenant: company.tenant.id, id: "x") }
    }
  }

  @Test func `rows of no company are refused`() async throws {
    let harness = try Harness()
    await #expect(throws: StoreError.self) {
      try await harness.store.write { transaction in
        let token = APIToken(id: "x", tenant: "nobody", role: .owner, createdAt: 0, expiresAt: .max, createdBy: nil)
        try transaction.insert(token, hash: [1])
      }
    }
  }

  @Test func `a closed store is not available, and the server says so`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    try harness.store.close()
    let reply = try await harness.send(.get, "/items", token: company.owner)
    #expect(reply.status == 503)
    #expect(try await harness.send(.get, "/health").status == 503)
  }

  @Test(arguments: ["UPDATE api_token SET role = 'root'", "UPDATE tenant SET settings = '{'"])
  func `a value that cannot be read lets nobody in`(sql: String) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    try await DatabaseQueue(path: harness.directory.database).write { try $0.execute(sql: sql) }
    let reply = try await harness.send(.get, "/v1/settings", token: company.owner)
    #expect(reply.status == 503)
  }

  @Test func `a revision's number is there once`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let revision = try await harness.current(company.tenant)
    await #expect(throws: StoreError.self) { try await harness.store.write { try $0.insert(revision) } }
  }

  @Test func `a store of a newer version is refused`() async throws {
    let harness = try Harness()
    try harness.store.close()
    try await DatabaseQueue(path: harness.directory.database).write {
      try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('999')")
    }
    #expect(throws: StoreError.newerFormat) { try SQLitePolicyStore(harness.directory) }
  }

  @Test func `a file that is no database is refused`() throws {
    let folder = try TemporaryFolder()
    let directory = try DataDirectory(folder("data"), creating: true)
    try Data(repeating: 7, count: 5000).write(to: URL(fileURLWithPath: directory.database))
    #expect(throws: StoreError.self) { try SQLitePolicyStore(directory) }
  }

  @Test func `many may open a new store at once`() async throws {
    let folder = try TemporaryFolder()
    let path = folder("data")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<6 {
        group.addTask {
          let directory = try DataDirectory(path, creating: true)
          let administration = Administration(
            store: try SQLitePolicyStore(directory), serverKey: directory.serverKey)
          _ = try await administration.createTenant(name: "Company \(index)")
        }
      }
      try await group.waitForAll()
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: path).allSatisfy { !$0.hasPrefix(".") })
  }
}
