import CofferAPI
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Hummingbird
import Testing

@testable import CofferServer

/// What is kept of the store is never older than the last commit, by whatever process.
@Suite struct ReadCacheTests {
  @Test func `a token that another process withdraws is unknown with the next request`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let other = try SQLitePolicyStore(harness.directory)
    let (secret, token) = try await harness.administration.createToken(tenant: company.tenant.id, role: .auditor)
    for _ in 0..<2 { #expect(try await harness.send(.get, "/items", token: secret.text).status == 200) }
    let isGone = try await other.write { try $0.deleteAPIToken(tenant: company.tenant.id, id: token.id) }
    #expect(isGone)
    #expect(try await harness.send(.get, "/items", token: secret.text).status == 401)
    // Known tokens go on, and one that expires ends although nothing is committed.
    #expect(try await harness.send(.get, "/items", token: company.auditor).status == 200)
    harness.time.advance(400 * 86_400)
    #expect(try await harness.send(.get, "/items", token: company.auditor).status == 401)
    try other.close()
  }

  @Test func `items and policy show each commit at once`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let token = try await device.token()
    let other = try SQLitePolicyStore(harness.directory)
    func shown() async throws -> (items: [String], revision: String?) {
      let items: [Item] = try await harness.send(.get, "/items", token: company.owner).json()
      let policy = try await harness.send(.get, "/v1/device/policy", token: token)
      #expect(policy.headers[.eTag] == "\"\(try await harness.current(company.tenant).digest)\"")
      return (items.map(\.bundleId), policy.headers[.eTag])
    }
    var seen: Set<String?> = []
    for index in 0..<5 {
      _ = try await company.add("com.acme.\(index)")
      for _ in 0..<2 {
        let now = try await shown()
        #expect(now.items == (0...index).map { "com.acme.\($0)" })
        seen.insert(now.revision)
      }
    }
    #expect(seen.count == 5)
    // Another process, which wakes nobody here.
    let elsewhere = PolicyServer(
      store: other, serverKey: harness.directory.serverKey, passwordCost: 14, time: harness.time, log: Harness.silent)
    let made = try await harness.send(
      .post, "/items", token: company.owner, json: Company.item("com.acme.elsewhere"),
      through: elsewhere.router.buildResponder())
    #expect(made.status == 201)
    #expect(try await shown().items.last == "com.acme.elsewhere")
    // And a policy that is to be signed anew for time alone.
    harness.time.advance(20 * 86_400)
    let again = try await device.token()
    let policy = try await harness.send(.get, "/v1/device/policy", token: again)
    #expect(!seen.contains(policy.headers[.eTag]))
    try other.close()
  }

  @Test func `what is kept opens nothing while the store fails`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    #expect(try await harness.send(.get, "/items", token: company.owner).status == 200)
    harness.faults.fail(.unavailable(code: 11))
    let reply = try await harness.send(.get, "/items", token: company.owner)
    #expect(reply.status == 503 && reply.headers[.retryAfter] != nil)
    harness.faults.fail(nil)
    #expect(try await harness.send(.get, "/items", token: company.owner).status == 200)
  }

  @Test func `what is not there is not kept`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (hash, reads) = ([UInt8](repeating: 1, count: 32), harness.server.reads)
    let isThere = try await reads.value(.apiToken(hash)) { try $0.apiToken(hash: hash) } != nil
    #expect(!isThere)
    let token = APIToken(
      id: "t", tenant: company.tenant.id, role: .auditor, name: "", scopes: nil, createdAt: 0, expiresAt: 9,
      createdBy: nil)
    try await harness.store.write { try $0.insert(token, hash: hash) }
    let found = try await reads.value(.apiToken(hash)) { try $0.apiToken(hash: hash) }
    #expect(found?.id == "t")
  }
}
