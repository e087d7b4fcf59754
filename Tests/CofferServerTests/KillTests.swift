import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import CofferTestSupport
import Foundation
import FoundationNetworking
import Glibc
import Testing

@testable import CofferServer

/// The real program, killed in the midst of changes.
@Suite struct KillTests {
  @Test func `what was answered is there after a kill, signed and recorded, and nothing by halves`() async throws {
    let folder = try TemporaryFolder()
    let command = ServerCommand(folder: folder)
    let tenant = try command("tenant", "create", "Acme", "--data", command.data).value
    let token = try command("token", "create", "--tenant", "Acme", "--role", "owner", "--data", command.data).value
    var answered: Set<String> = []
    for round in 0..<3 {
      let process = command.process(["run", "--data", command.data, "--listen", "127.0.0.1:0"])
      let stdout = Pipe()
      try process.run(output: stdout)
      var output = Data()
      while !output.contains(10) { output += stdout.fileHandleForReading.availableData }
      let url = String(decoding: output.prefix { $0 != 10 }, as: UTF8.self).split(separator: " ").last ?? ""
      let (pid, address) = (process.processIdentifier, "\(url)/items")
      // Four at once; the kill comes while others are under way.
      let made = await withTaskGroup(of: Set<String>.self) { group in
        for worker in 0..<4 {
          group.addTask {
            var made: Set<String> = []
            for index in 0..<200 {
              let id = "app-\(round)-\(worker)-\(index)"
              guard await Self.post(address, token: token, json: Company.item(id)) == 201 else { break }
              made.insert(id)
              if worker == 0 && index == 10 + round { kill(pid, SIGKILL) }
            }
            return made
          }
        }
        return await group.reduce(into: Set<String>()) { $0.formUnion($1) }
      }
      #expect(process.waitUntilExit() == .killed(SIGKILL))
      #expect(made.count < 800)
      answered.formUnion(made)
    }
    let directory = try DataDirectory(command.data, creating: false)
    let store = try SQLitePolicyStore(directory)
    let (apps, records, revisions, keys) = try await store.read { transaction in
      (
        Set(try transaction.apps(tenant: tenant).map(\.bundleId)),
        try transaction.auditRecords(tenant: tenant, after: 0, limit: .max),
        try transaction.revisions(tenant: tenant, before: .max, limit: .max),
        try #require(try transaction.tenant(id: tenant)).keys
      )
    }
    #expect(!answered.isEmpty && apps.isSuperset(of: answered))
    // Each app has its revision and its two entries, each revision names the one before, and the chain is whole.
    #expect(revisions.map(\.number) == (1...Int64(apps.count + 1)).reversed())
    let policies = try revisions.map(PolicyServer.policy)
    #expect(zip(policies, revisions.dropFirst()).allSatisfy { $0.prevHash == $1.digest })
    #expect(Set(policies[0].apps.map(\.bundleId)) == apps)
    #expect(keys.epoch == 1)
    var previous = AuditRecord.genesis
    for (index, record) in records.enumerated() {
      #expect(record.number == Int64(index + 1))
      #expect(record.hash == AuditRecord.hash(previous: previous, entry: record.entry))
      previous = record.hash
    }
    let actions = try records.map { try JSONDecoder().decode(AuditEntry.self, from: Data($0.entry)).action }
    #expect(actions.count { $0 == "app.approved" } == apps.count)
    #expect(actions.count { $0 == "policy.published" } == apps.count + 1)
    try store.close()
  }

  private static func post(_ url: String, token: String, json: String) async -> Int? {
    guard let url = URL(string: url) else { return nil }
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.httpBody = Data(json.utf8)
    return ((try? await URLSession.shared.data(for: request))?.1 as? HTTPURLResponse)?.statusCode
  }
}
