import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Approvals that end, and the two people who stand behind one.
@Suite struct ApprovalEndTests {
  private struct View: Decodable {
    let id: String
    let state: String
    let expiresAt: Int64?
  }

  private static func decide(
    _ id: String, _ step: String, _ json: String = "{}", by person: Person
  ) async throws -> Reply {
    let tag = try await person.company.tag("/v1/apps/\(id)")
    return try await person.send(.post, "/v1/apps/\(id)/\(step)", json: json, headers: [.ifMatch: tag])
  }

  private static func approved(_ person: Person, until end: Int64) async throws -> String {
    let id = try await person.company.make("/v1/apps", Company.app(more: #","expiresAt":\#(end)"#))
    #expect(try await decide(id, "approve", by: person).status == 200)
    return id
  }

  @Test func `an approval ends without anybody asking, and connected devices hear of it`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let end = harness.time.seconds + 1000
    let id = try await Self.approved(try await Person(company), until: end)
    let (reader, task) = try await EventTests.open(try await company.enroll())
    await reader.wait(for: "id: 2.0")
    harness.time.advance(999)
    await harness.server.endApprovals()
    #expect(try await harness.current(company.tenant).number == 2)
    harness.time.advance(1)
    await harness.server.endApprovals()
    await reader.wait(for: "id: 3.0")
    #expect(try await company.policy().apps.isEmpty)
    let shown = try await harness.send(.get, "/v1/apps/\(id)", token: company.owner).json(View.self)
    #expect(shown.state == "revoked")
    await harness.server.endApprovals()
    #expect(try await harness.current(company.tenant).number == 3)
    harness.server.events.close()
    try await task.value
  }

  @Test func `whoever asks first after an end wakes the others`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    _ = try await Self.approved(try await Person(company), until: harness.time.seconds + 60)
    let (reader, task) = try await EventTests.open(try await company.enroll())
    await reader.wait(for: "id: 2.0")
    let asking = try await company.enroll()
    harness.time.advance(60)
    #expect(try await harness.send(.get, "/v1/device/policy", token: try await asking.token()).status == 200)
    await reader.wait(for: "id: 3.0")
    harness.server.events.close()
    try await task.value
  }

  @Test func `an earlier revision brings back no approval that is over, and no other without its end`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let end = harness.time.seconds + 1000
    let id = try await Self.approved(person, until: end)
    func restore(_ revision: Int) async throws {
      let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/policy")]
      let path = "/v1/revisions/\(revision)/restore"
      #expect(try await harness.send(.post, path, token: company.owner, headers: headers).status == 200)
    }
    #expect(try await Self.decide(id, "revoke", by: person).status == 200)
    try await restore(2)
    let back = try await harness.send(.get, "/v1/apps/\(id)", token: company.owner).json(View.self)
    #expect(back.state == "approved" && back.expiresAt == end)
    harness.time.advance(1000)
    await harness.server.endApprovals()
    try await restore(2)
    #expect(try await company.policy().apps.isEmpty)
  }

  @Test func `an earlier revision brings back no app that was removed, and one of another name with its end`()
    async throws
  {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let end = harness.time.seconds + 1000
    let id = try await Self.approved(person, until: end)
    let path = "/v1/apps/\(id)"
    func restore() async throws {
      let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/policy")]
      #expect(
        try await harness.send(.post, "/v1/revisions/2/restore", token: company.owner, headers: headers).status == 200)
    }
    let before = try await company.policy().apps
    let changed = try await person.send(
      .put, path, json: Company.app("another", more: #","expiresAt":\#(end)"#),
      headers: [.ifMatch: try await company.tag(path)])
    #expect(changed.status == 200)
    // Asked for without an end now, which is none that it was approved with.
    let endless = try await person.send(
      .put, path, json: Company.app("another"), headers: [.ifMatch: try await company.tag(path)])
    #expect(endless.status == 200)
    try await restore()
    #expect(try await company.policy().apps == before)
    #expect(try await harness.send(.get, path, token: company.owner).json(View.self).expiresAt == end)
    // Nor does who refuses such a request give it more, nor who asks once more after that.
    for isAskedAgain in [false, true] {
      for isLast in isAskedAgain ? [false, true] : [false] {
        let asked = try await person.send(
          .put, path, json: Company.app("another\(isLast)"), headers: [.ifMatch: try await company.tag(path)])
        #expect(asked.status == 200)
        if !isLast { #expect(try await Self.decide(id, "revoke", by: person).status == 200) }
      }
      try await restore()
      #expect(try await harness.send(.get, path, token: company.owner).json(View.self).expiresAt == end)
    }
    #expect(try await person.send(.delete, path, headers: [.ifMatch: try await company.tag(path)]).status == 204)
    // Nor by somebody who asks for one of the same name.
    _ = try await company.make("/v1/apps", Company.app())
    try await restore()
    #expect(try await company.policy().apps.isEmpty)
  }

  @Test func `an earlier revision brings back each app once, and what gives way is told`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    let (first, second) = (
      try await company.make("/items", Company.item("one")), try await company.make("/items", Company.item("two"))
    )
    let before = try await company.policy()
    func change(_ id: String, _ name: String) async throws {
      let reply = try await harness.send(.put, "/items/\(id)", token: company.owner, json: Company.item(name))
      #expect(reply.status == 200)
    }
    func restore() async throws {
      let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/policy")]
      let path = "/v1/revisions/\(before.revision)/restore"
      #expect(try await person.send(.post, path, headers: headers).status == 200)
    }
    func names() async throws -> [String: String] {
      Dictionary(uniqueKeysWithValues: try await company.policy().apps.map { ($0.id, $0.bundleId) })
    }
    // Names that changed places.
    for (id, name) in [(first, "three"), (second, "one"), (first, "two")] { try await change(id, name) }
    try await restore()
    #expect(try await names() == [first: "one", second: "two"])
    // One that was removed, and whose name the other has now.
    #expect(try await harness.send(.delete, "/items/\(second)", token: company.owner).status == 204)
    try await change(first, "two")
    try await restore()
    #expect(try await names() == [first: "one"])
    // A third one that has got the name since.
    try await change(first, "three")
    let third = try await company.make("/items", Company.item("one"))
    try await restore()
    #expect(try await names() == [first: "one"])
    let entries = try await company.auditEntries()
    #expect(entries.contains { $0.action == "app.removed" && $0.subject == third })
    // What would change is what does: nothing more.
    let page = try await ConsoleRuleTests.page(person, "/console/revisions/\(before.revision)")
    #expect(page.contains("Nothing: what is in force says the same.") && !page.contains("/restore"))
  }

  private static func twoPeople(_ company: Company) async throws -> Reply {
    try await company.harness.send(
      .put, "/v1/approval-settings", token: company.owner,
      headers: [.ifMatch: try await company.tag("/v1/approval-settings")], json: #"{"twoPeople":true}"#)
  }

  @Test func `neither a removed person nor one who lost the role stands behind an approval`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    #expect(try await Self.twoPeople(company).status == 200)
    for isRemoved in [true, false] {
      let (first, second) = (try await Person(company), try await Person(company, .editor))
      let third = try await Person(company, .editor)
      let body = Company.app("app.\(isRemoved)")
      let id = try await second.send(.post, "/v1/apps", json: body).json(View.self).id
      let path = "/v1/administrators/\(second.administrator.id)"
      let headers: HTTPFields = [.ifMatch: try await company.tag(path)]
      let gone =
        isRemoved
        ? try await first.send(.delete, path, headers: headers)
        : try await first.send(.put, path, json: #"{"role":"auditor"}"#, headers: headers)
      #expect([200, 204].contains(gone.status))
      #expect(try await Self.decide(id, "approve", by: first).json(View.self).state == "requested")
      #expect(try await Self.decide(id, "approve", by: third).json(View.self).state == "approved")
    }
  }

  @Test func `the second person gives no more time than the first asked for`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    #expect(try await Self.twoPeople(company).status == 200)
    let (first, second) = (try await Person(company), try await Person(company))
    let end = harness.time.seconds + 1000
    let body = Company.app(more: #","expiresAt":\#(end)"#)
    let id = try await first.send(.post, "/v1/apps", json: body).json(View.self).id
    #expect(try await Self.decide(id, "approve", #"{"expiresAt":\#(end + 1)}"#, by: second).status == 409)
    let shorter = try await Self.decide(id, "approve", #"{"expiresAt":\#(end - 1)}"#, by: second).json(View.self)
    #expect(shorter.state == "approved" && shorter.expiresAt == end - 1)
  }

  @Test func `where two people are asked, one alone lets nothing more through by rules`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (first, second) = (try await Person(company, .editor), try await Person(company, .editor))
    func rule(_ id: String, _ effect: String) -> String { #"{"id":"\#(id)","effect":"\#(effect)","conditions":[]}"# }
    _ = try await company.make("/v1/rules", rule("old", "forbid"))
    #expect(try await Self.twoPeople(company).status == 200)
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/rules/old")]
    #expect(try await first.send(.post, "/v1/rules", json: rule("more", "permit")).status == 409)
    #expect(try await first.send(.put, "/v1/rules/old", json: rule("old", "permit"), headers: headers).status == 409)
    #expect(try await first.send(.delete, "/v1/rules/old", headers: headers).status == 409)
    // A prohibition does not wait.
    #expect(try await first.send(.post, "/v1/rules", json: rule("less", "forbid")).status == 201)
    // The revision before it had the rule as well, and not the new prohibition.
    let tag: HTTPFields = [.ifMatch: try await company.tag("/v1/policy")]
    #expect(try await first.send(.post, "/v1/revisions/2/restore", headers: tag).status == 409)

    let content = """
      {"content":{"rules":[\(rule("more", "permit"))],"classifications":[],"fileTypes":[],
      "settings":{"ownerActions":[],"allowFilteredTier":false},"grace":{"warnAfter":1,"blockAfter":2}}}
      """
    struct Made: Decodable { let id: String }
    func draft(_ author: Person?) async throws -> String {
      guard let author else {
        return try await harness.send(.post, "/v1/drafts", token: company.owner, json: content).json(Made.self).id
      }
      return try await author.send(.post, "/v1/drafts", json: content).json(Made.self).id
    }
    func publish(_ id: String, _ person: Person?) async throws -> Int {
      let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/drafts/\(id)")]
      let path = "/v1/drafts/\(id)/publish"
      if let person { return try await person.send(.post, path, headers: headers).status }
      return try await harness.send(.post, path, token: company.owner, headers: headers).status
    }
    // A token is nobody in particular.
    let byToken = try await draft(nil)
    #expect(try await publish(byToken, first) == 403)
    let own = try await draft(first)
    #expect(try await publish(own, first) == 403)
    #expect(try await publish(own, nil) == 403)
    // Whoever changes the content has written it, and a note is no content.
    let matching: HTTPFields = [.ifMatch: try await company.tag("/v1/drafts/\(own)")]
    #expect(try await second.send(.put, "/v1/drafts/\(own)", json: #"{"note":"n"}"#, headers: matching).status == 200)
    #expect(try await publish(own, first) == 403)
    #expect(try await publish(own, second) == 200)
    #expect(try await company.policy().rules.map(\.id) == ["more"])
  }

  @Test func `no token ends the rule of two people`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    #expect(try await Self.twoPeople(company).status == 200)
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/approval-settings")]
    let (path, body) = ("/v1/approval-settings", #"{"twoPeople":false}"#)
    #expect(try await harness.send(.put, path, token: company.owner, headers: headers, json: body).status == 403)
    #expect(try await Person(company).send(.put, path, json: body, headers: headers).status == 200)
  }

  @Test func `drafts are bounded, and a list of them is short`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let first = try await company.make("/v1/drafts", #"{"note":"mine"}"#)
    let list = String(decoding: try await harness.send(.get, "/v1/drafts", token: company.owner).body, as: UTF8.self)
    #expect(list.contains(first) && list.contains("mine") && !list.contains("content") && !list.contains("grace"))
    for _ in 1..<ResourceKind.draft.maximum { _ = try await company.make("/v1/drafts", "{}") }
    #expect(try await harness.send(.post, "/v1/drafts", token: company.owner, json: "{}").status == 409)
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/drafts/\(first)")]
    let path = "/v1/drafts/\(first)"
    #expect(try await harness.send(.delete, path, token: company.owner, headers: headers).status == 204)
    _ = try await company.make("/v1/drafts", "{}")
  }
}
