import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import GRDB
import HTTPTypes
import Testing

@testable import CofferServer

/// Every change is signed into a revision, and the revisions form a chain.
@Suite struct RevisionTests {
  /// All revisions of a company, read beside the store.
  static func revisions(_ company: Company) throws -> [Revision] {
    let queue = try DatabaseQueue(path: company.harness.directory.database)
    return try queue.read { database in
      try Row.fetchAll(
        database, sql: "SELECT * FROM revision WHERE tenant = ? ORDER BY number", arguments: [company.tenant.id]
      ).map { row in
        Revision(
          tenant: company.tenant.id, number: row["number"], bundle: row["bundle"], digest: row["digest"],
          keyEpoch: row["key_epoch"], issuedAt: row["issued_at"], notAfter: row["not_after"])
      }
    }
  }

  /// Verifies each bundle, the numbers without a gap and each bundle's name of the one before it.
  static func verifyChain(_ company: Company) async throws -> [Policy] {
    let tenant = try #require(try await company.harness.store.read { try $0.tenant(id: company.tenant.id) })
    let revisions = try revisions(company)
    let policies = try revisions.map { try company.verified($0, keyset: tenant.keys.keyset) }
    #expect(policies.map(\.revision) == Array(1...Int64(policies.count)))
    #expect(policies.map(\.prevHash) == [nil] + revisions.dropLast().map(\.digest))
    #expect(Set(revisions.map(\.digest)).count == revisions.count)
    return policies
  }

  @Test func `a new company's policy approves nothing`() async throws {
    let company = try await Harness().company()
    let policy = try #require(try await Self.verifyChain(company).first)
    #expect(policy.apps.isEmpty && policy.rules.isEmpty)
    #expect(policy.audience == Policy.everyDevice)
    #expect(policy.keyEpoch == 1)
    #expect(policy.settings == Settings(ownerActions: [.import, .view, .edit], allowFilteredTier: false))
  }

  @Test func `each change makes one revision and each refusal none`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (first, second) = (try await company.add("a"), try await company.add("b"))
    func send(_ method: HTTPRequest.Method, _ path: String, _ body: String? = nil) async throws -> Int {
      try await harness.send(method, path, token: company.owner, json: body).status
    }
    #expect(try await send(.put, "/items/\(first.id)", Company.item("a", name: "New")) == 200)
    #expect(try await send(.put, "/items/\(first.id)", Company.item("b")) == 409)
    #expect(try await send(.post, "/items", Company.item("b")) == 409)
    #expect(try await send(.post, "/items", "{}") == 422)
    #expect(try await send(.delete, "/items/\(UUID().uuidString)") == 404)
    #expect(try await send(.delete, "/items/\(second.id)") == 204)
    let policies = try await Self.verifyChain(company)
    #expect(
      policies.map { $0.apps.map(\.name) } == [
        [], ["Acme Editor"], ["Acme Editor", "Acme Editor"],
        ["New", "Acme Editor"], ["New"],
      ])
    #expect(policies.last?.apps.map(\.id) == [first.id])
  }

  @Test func `the same change again makes no revision`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let item = try await company.add()
    let settings = #"{"ownerActions":["saveCopy"],"allowFilteredTier":true}"#
    var tags: Set<String> = []
    for _ in 0..<3 {
      let put = try await harness.send(.put, "/items/\(item.id)", token: company.owner, json: Company.item())
      #expect(put.status == 200)
      let set = try await harness.send(.put, "/v1/settings", token: company.owner, json: settings)
      #expect(set.status == 200)
      tags.formUnion([try #require(put.headers[.eTag]), try #require(set.headers[.eTag])])
    }
    #expect(tags.count == 2)
    #expect(try await Self.verifyChain(company).count == 3)
  }

  @Test func `changes at once are signed one after the other`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let other = try await harness.company("Other")
    // Another process on the same data directory, and another company on both.
    let second = PolicyServer(
      store: try SQLitePolicyStore(harness.directory), serverKey: harness.directory.serverKey, time: harness.time,
      log: Harness.silent)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<24 {
        group.addTask {
          let target = index % 4 == 3 ? other : company
          if index.isMultiple(of: 2) {
            let token = target.owner
            let reply = try await harness.send(.post, "/items", token: token, json: Company.item("app\(index)"))
            #expect(reply.status == 201)
          } else {
            let app = AppApproval(
              id: "direct-\(index)", name: "Direct", identity: AppIdentity(bundleId: "direct\(index)", teamId: "T"),
              teamKey: nil, tier: .filtered, extensions: ["pdf"], actions: [.view])
            try await second.commit(.server, in: target.tenant.id) { change in
              change.isPolicyChanged = try change.transaction.insert(app, tenant: target.tenant.id)
            }
          }
        }
      }
      try await group.waitForAll()
    }
    let policies = try await Self.verifyChain(company)
    #expect(policies.count == 1 + 18)
    #expect(zip(policies, policies.dropFirst()).allSatisfy { $0.apps.count + 1 == $1.apps.count })
    #expect(try await Self.verifyChain(other).count == 1 + 6)
  }

  @Test func `of equal creates at once one succeeds`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<8 {
        group.addTask {
          try await harness.send(.post, "/items", token: company.owner, json: Company.item()).status
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses.sorted() == [201] + Array(repeating: 409, count: 7))
    #expect(try await Self.verifyChain(company).count == 2)
  }

  @Test func `settings are read, changed, held by If-Match and signed`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let read = try await harness.send(.get, "/v1/settings", token: company.auditor)
    #expect(try read.json(Settings.self) == .initial)
    let body = #"{"ownerActions":["saveCopy","mount"],"allowFilteredTier":true}"#
    let stale = try await harness.send(
      .put, "/v1/settings", token: company.owner, headers: [.ifMatch: "\"0\""], json: body)
    #expect(stale.status == 412)
    let tag = try #require(read.headers[.eTag])
    let changed = try await harness.send(
      .put, "/v1/settings", token: company.owner, headers: [.ifMatch: tag], json: body)
    #expect(changed.status == 200)
    let expected = Settings(ownerActions: [.saveCopy, .mount], allowFilteredTier: true)
    #expect(try changed.json(Settings.self) == expected)
    #expect(try await company.policy().settings == expected)
    for invalid in [
      #"{"ownerActions":["fly"],"allowFilteredTier":true}"#,
      #"{"ownerActions":["view","view"],"allowFilteredTier":true}"#,
      #"{"ownerActions":[],"allowFilteredTier":1}"#, #"{"ownerActions":[]}"#,
      #"{"ownerActions":[],"allowFilteredTier":true,"more":1}"#,
    ] {
      #expect(try await harness.send(.put, "/v1/settings", token: company.owner, json: invalid).status == 422)
    }
    #expect(try await Self.verifyChain(company).count == 2)
  }

  @Test func `a policy that devices would not take is refused and undone`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    // As many apps as a policy may have, put there at once.
    try await harness.store.write { transaction in
      for index in 0..<10_000 {
        let app = AppApproval(
          id: "a\(index)", name: "A", identity: AppIdentity(bundleId: "b\(index)", teamId: "T"), teamKey: nil,
          tier: .filtered, extensions: [], actions: [])
        _ = try transaction.insert(app, tenant: company.tenant.id)
      }
    }
    let reply = try await harness.send(.post, "/items", token: company.owner, json: Company.item())
    #expect(reply.status == 422)
    #expect(reply.problem == "policy-too-large")
    #expect(try await harness.store.read { try $0.apps(tenant: company.tenant.id).count } == 10_000)
    #expect(try await harness.current(company.tenant).number == 1)
  }

  @Test func `a policy and its keyset are signed anew when half of their time is over`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    func fetch() async throws -> (PolicyResponse, Policy, Keyset) {
      let token = try await device.token()
      let answer = try await harness.send(.get, "/v1/device/policy", token: token).json(PolicyResponse.self)
      let keyset = try SignedKeyset(verifying: answer.keyset, root: company.tenant.keys.root).keyset
      return (answer, try PolicyBundle(verifying: answer.policy, keyset: keyset).policy, keyset)
    }
    let first = try await fetch()
    harness.time.advance(Publisher.bundleLifetime / 2 - 1)
    #expect(try await fetch().0 == first.0)
    harness.time.advance(1)
    let renewed = try await fetch()
    #expect(renewed.1.revision == 2)
    #expect(renewed.1.notAfter == harness.time.seconds + Publisher.bundleLifetime)
    #expect(renewed.0.keyset == first.0.keyset)
    harness.time.advance(Publisher.keysetLifetime)
    let late = try await fetch()
    #expect(late.2.epoch == first.2.epoch)
    #expect(late.2.keys == first.2.keys)
    #expect(late.2.notAfter == harness.time.seconds + Publisher.keysetLifetime)
    #expect(try await Self.verifyChain(company).count == 3)
    // A device that joins gets nothing stale either.
    harness.time.advance(Publisher.bundleLifetime)
    let joined = try await company.enroll().enrollment
    #expect(try PolicyBundle(verifying: joined.policy, keyset: late.2).policy.revision == 4)
  }

  @Test func `when the policy cannot be signed, nothing changes and no code is used up`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    try await DatabaseQueue(path: harness.directory.database).write {
      try $0.execute(sql: "UPDATE tenant SET sealed_signing_key = zeroblob(60)")
    }
    let change = try await harness.send(.post, "/items", token: company.owner, json: Company.item())
    #expect(change.status == 503)
    #expect(change.problem == "unavailable")
    #expect(try await harness.store.read { try $0.apps(tenant: company.tenant.id) }.isEmpty)
    harness.time.advance(Publisher.bundleLifetime / 2)
    let code = try await company.code().secret
    let joining = try await harness.send(.post, "/v1/enroll", json: Company.enrollment(code))
    #expect(joining.status == 503)
    let hash = Digest.sha256(code.utf8)
    #expect(try await harness.store.read { try $0.unusedEnrollment(hash: hash) } != nil)
    #expect(try await harness.store.read { try $0.devices(tenant: company.tenant.id) }.isEmpty)
  }
}
