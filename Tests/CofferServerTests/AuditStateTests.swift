import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferSystem
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// What the audit proves of a change, and what it holds of attempts to sign in.
@Suite struct AuditStateTests {
  /// Changes of each kind, by one owner: where it is read, and what is put there.
  static let changes: [(path: String, method: HTTPRequest.Method, json: String)] = [
    ("/v1/settings", .put, #"{"ownerActions":["view"],"allowFilteredTier":true}"#),
    ("/v1/grace", .put, #"{"warnAfter":100,"blockAfter":200}"#),
    ("/v1/managed-settings", .put, #"{"passcodeMinimumLength":8}"#),
    ("/v1/approval-settings", .put, #"{"twoPeople":true}"#),
    ("/v1/rules/r", .put, #"{"id":"r","effect":"forbid","actions":["print"],"conditions":[]}"#),
    ("/v1/classifications/secret", .put, #"{"id":"secret","name":"Very secret"}"#),
    ("/v1/groups/sales", .put, #"{"id":"sales","name":"Sales and more"}"#),
    ("/v1/keys", .post, ""),
  ]

  private static func digest(_ reply: Reply) -> String { Digest.sha256(reply.body).hexadecimal }

  @Test(arguments: changes)
  func `an entry has the digests of what the API showed before and after`(
    path: String, method: HTTPRequest.Method, json: String
  ) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    for (path, json) in [
      ("/v1/rules", #"{"id":"r","effect":"forbid","actions":["view"],"conditions":[]}"#),
      ("/v1/classifications", #"{"id":"secret","name":"Secret"}"#), ("/v1/groups", #"{"id":"sales","name":"Sales"}"#),
    ] {
      #expect(try await harness.send(.post, path, token: company.owner, json: json).status == 201)
    }
    let before = try await harness.send(.get, path, token: company.owner)
    #expect(before.status == 200)
    let changed = try await harness.send(
      method, method == .post ? path + "/rotate" : path, token: company.owner,
      headers: [.ifMatch: try #require(before.headers[.eTag])], json: method == .post ? nil : json)
    #expect(changed.status == 200, "\(String(decoding: changed.body, as: UTF8.self))")
    let after = try await harness.send(.get, path, token: company.owner)
    let entry = try #require(try await company.auditEntries().last { $0.action != "policy.published" })
    #expect(entry.details["before"] == Self.digest(before))
    #expect(entry.details["after"] == Self.digest(after) && before.body != after.body)
    // Which is what the tags say, too.
    #expect(after.headers[.eTag] == "\"\(Self.digest(after))\"")
  }

  @Test func `an app's whole life is proved, from what was asked for to its removal`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let id = try await company.make("/v1/apps", Company.app())
    let path = "/v1/apps/\(id)"
    var states = [Self.digest(try await harness.send(.get, path, token: company.owner))]
    for step in ["approve", "revoke"] {
      let done = try await harness.send(
        .post, "\(path)/\(step)", token: company.owner, headers: [.ifMatch: try await company.tag(path)], json: "{}")
      #expect(done.status == 200)
      states.append(Self.digest(try await harness.send(.get, path, token: company.owner)))
    }
    let removed = try await harness.send(
      .delete, path, token: company.owner, headers: [.ifMatch: try await company.tag(path)])
    #expect(removed.status == 204)
    let entries = try await company.auditEntries().filter { $0.action.hasPrefix("app.") }
    #expect(entries.map { $0.details["before"] } == [nil, states[0], states[1], states[2]])
    #expect(entries.map { $0.details["after"] } == [states[0], states[1], states[2], nil])
    // An item is an app.
    let item = try await company.add("com.acme.other")
    let shown = try await harness.send(.get, "/v1/apps/\(item.id)", token: company.owner)
    let approved = try await company.auditEntries().last { $0.action == "app.approved" }
    #expect(approved?.details["after"] == Self.digest(shown))
    // Each revision names the digest of the one before.
    let published = try await company.auditEntries().filter { $0.action == "policy.published" }
    #expect(published.count > 2)
    #expect(zip(published, published.dropFirst()).allSatisfy { $0.details["after"] == $1.details["before"] })
  }

  @Test func `a flood of refused sign-ins is few entries, with counts`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let other = try await harness.company("Other")
    let (person, second) = (try await Person(company), try await Person(company))
    let before = try await company.auditEntries().count
    func attempt(_ email: String, _ company: String = "Acme") async throws {
      let body = SessionTests.body(email, "wrong horse battery", company: company)
      #expect([401, 429].contains(try await harness.send(.post, "/v1/session", json: body).status))
    }
    func entries() async throws -> [AuditEntry] {
      await harness.server.recordRefusedSignIns()
      return Array(try await company.auditEntries().dropFirst(before))
    }
    try await attempt(person.email)
    try await attempt("nobody@example.com", "Nobody")
    let first = try await entries()
    #expect(first.map(\.action) == ["session.refused"] && first.map(\.subject) == [person.administrator.id])
    #expect(first[0].details["refused"] == "1" && first[0].details["limited"] == "0" && first[0].actor == "server")
    for _ in 0..<29 { try await attempt(person.email) }
    for index in 0..<30 { try await attempt("nobody\(index)@example.com") }
    // By the password that is asked for again, too.
    let again = try await second.send(.post, "/v1/session/second-factor", json: #"{"password":"wrong horse"}"#)
    #expect(again.status == 401)
    let begun = try await entries()
    #expect(Set(begun.map(\.subject)) == [person.administrator.id, nil, second.administrator.id] && begun.count == 3)
    harness.time.advance(RefusedSignIns.window)
    let all = try await entries()
    #expect(all.count == 4)
    let own = all.filter { $0.subject == person.administrator.id }
    let refused = own.compactMap { Int($0.details["refused"] ?? "") }.reduce(0, +)
    let limited = own.compactMap { Int($0.details["limited"] ?? "") }.reduce(0, +)
    #expect(refused == SignInLimiter.attemptsForAccount && refused + limited == 30)
    #expect(try await other.auditEntries().allSatisfy { $0.action != "session.refused" })
    // The chain is whole, and without a name that was typed.
    let export = try await harness.send(.get, "/v1/audit/export", token: company.owner)
    #expect(throws: Never.self) { try AuditTests.verify(export.body.split(separator: 10).map(Array.init)) }
    #expect(!String(decoding: export.body, as: UTF8.self).contains("nobody"))
    harness.time.advance(RefusedSignIns.window)
    _ = try await entries()
    harness.time.advance(RefusedSignIns.window)
    _ = try await entries()
    #expect(harness.server.refusedSignIns.entryCount == 0)
  }

  @Test func `what cannot be written is written later, and the counting stays small`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let body = SessionTests.body(person.email, "wrong horse battery")
    #expect(try await harness.send(.post, "/v1/session", json: body).status == 401)
    harness.faults.fail(.unavailable(code: 5))
    await harness.server.recordRefusedSignIns()
    harness.faults.fail(nil)
    await harness.server.recordRefusedSignIns()
    let entry = try #require(try await company.auditEntries().last)
    #expect(entry.action == "session.refused" && entry.details["refused"] == "1")
    let counts = RefusedSignIns()
    for index in 0..<10_000 {
      counts.note(.init(tenant: "t", account: "\(index)"), isLimited: false, now: 1)
    }
    #expect(counts.entryCount <= RefusedSignIns.accountsOfCompany + 1)
    #expect(counts.take(uptime: 0).reduce(0) { $0 + $1.count.refused } == 10_000)
    for index in 0..<2 * RefusedSignIns.capacity {
      counts.note(.init(tenant: "\(index)", account: nil), isLimited: false, now: 1)
    }
    #expect(counts.entryCount <= RefusedSignIns.capacity + RefusedSignIns.accountsOfCompany + 1)
  }
}
