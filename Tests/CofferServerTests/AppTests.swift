import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Approvals and their states: asked for, approved by one person or by two, over, revoked.
@Suite struct AppTests {
  struct View: Decodable {
    let id: String
    let state: String
  }

  static func decide(
    _ company: Company, _ id: String, _ step: String, _ json: String = "{}", by person: Person? = nil
  ) async throws -> Reply {
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/apps/\(id)")]
    let path = "/v1/apps/\(id)/\(step)"
    if let person { return try await person.send(.post, path, json: json, headers: headers) }
    return try await company.harness.send(.post, path, token: company.owner, headers: headers, json: json)
  }

  @Test func `what is asked for holds once it is approved, and no longer when it is revoked`() async throws {
    let company = try await Harness().company()
    let key = Base64URL.encode(SigningKey().verifyingKey.bytes)
    let more = #","teamKey":"\#(key)","tier":"enforced","platform":"ios","minimumVersion":"2.1","reason":"For sales""#
    let id = try await company.make("/v1/apps", Company.app(more: more))
    #expect(try await company.policy().apps.isEmpty)
    #expect(try await company.harness.send(.get, "/items", token: company.owner).body == Array("[]".utf8))
    let approved = try await Self.decide(company, id, "approve", #"{"reason":"Fine"}"#)
    #expect(try approved.json(View.self).state == "approved")
    let policy = try await company.policy()
    #expect(policy.apps.map(\.id) == [id] && policy.apps[0].tier == .enforced)
    #expect(policy.rules.map(\.id) == ["minimum-version.\(id)"])
    #expect(try await company.harness.send(.get, "/items", token: company.owner).json([Item].self).map(\.id) == [id])
    #expect(try await Self.decide(company, id, "approve").status == 409)
    #expect(try await Self.decide(company, id, "revoke", #"{"reason":"No longer"}"#).status == 200)
    let after = try await company.policy()
    #expect(after.apps.isEmpty && after.rules.isEmpty)
    #expect(try await Self.decide(company, id, "revoke").status == 409)
    #expect(try await Self.decide(company, id, "approve").status == 409)
    // A change is a new request.
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/apps/\(id)")]
    let changed = try await company.harness.send(
      .put, "/v1/apps/\(id)", token: company.owner, headers: headers, json: Company.app())
    #expect(try changed.json(View.self).state == "requested")
    #expect(try await Self.decide(company, id, "approve").status == 200)
    let actions = try await company.auditEntries().filter { $0.subject == id }.map(\.action)
    #expect(actions == ["app.requested", "app.approved", "app.revoked", "app.changed", "app.approved"])
  }

  @Test func `a company has so many apps and no more`() async throws {
    let company = try await Harness().company()
    _ = try await company.make("/v1/apps", Company.app())
    let known = try await company.harness.store.read {
      try $0.appRecords(tenant: company.tenant.id, after: 0, limit: 1)
    }
    let first = try #require(known.first).value
    try await company.harness.store.write { transaction in
      for number in 1..<AppRecord.maximumCount {
        var app = first
        app.approval.id = UUID().uuidString.lowercased()
        app.approval.bundleId += ".\(number)"
        _ = try transaction.insert(app, tenant: company.tenant.id)
      }
    }
    for (path, body) in [("/v1/apps", Company.app("com.acme.more")), ("/items", Company.item("com.acme.more"))] {
      let refused = try await company.harness.send(.post, path, token: company.owner, json: body)
      #expect(refused.status == 409 && String(decoding: refused.body, as: UTF8.self).contains("Remove one first"))
    }
    let path = "/v1/apps/\(first.approval.id)"
    let removed = try await company.harness.send(
      .delete, path, token: company.owner, headers: [.ifMatch: try await company.tag(path)])
    #expect(removed.status == 204)
    _ = try await company.make("/v1/apps", Company.app("com.acme.more"))
  }

  @Test func `the minimum version is decided as it says`() async throws {
    let company = try await Harness().company()
    let key = SigningKey().verifyingKey
    let more = #","teamKey":"\#(Base64URL.encode(key.bytes))","minimumVersion":"2.1""#
    let id = try await company.make("/v1/apps", Company.app(more: more))
    _ = try await Self.decide(company, id, "approve")
    let policy = try await company.policy()
    for (version, isPermitted) in [("2.0.9", false), ("2.1", true), ("2.10", true), ("3", true), ("x", false)] {
      let app = RequestingApp(
        identity: AppIdentity(bundleId: "com.acme.editor", teamId: "ACME"), version: version, teamKey: key,
        tier: .mediated)
      let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
      let file = FileFacts(
        content: ContentType(fileExtension: "docx", sniffed: docx), protection: .complete, size: 1)
      let decision = decide2(
        Request(actor: .app(app), action: .openIn, file: file, principal: Principal(device: "d")), policy)
      #expect(decision.isPermitted == isPermitted, "\(version): \(decision.sentence)")
    }
  }

  private func decide2(_ request: CofferPolicy.Request, _ policy: Policy) -> Decision {
    CofferPolicy.decide(
      request, policy: policy,
      context: DecisionContext(now: 1, policyAge: 0, isDeviceUnlocked: true, osVersion: "1"))
  }

  /// How many apps the policy has that `device` gets.
  private static func appsOn(_ device: EnrolledDevice) async throws -> Int {
    let reply = try await device.company.harness.send(
      .get, "/v1/device/policy", token: try await device.token())
    let answer = try reply.json(PolicyResponse.self)
    let keyset = try SignedKeyset(verifying: answer.keyset, root: device.company.tenant.keys.root)
    return try PolicyBundle(verifying: answer.policy, keyset: keyset.keyset).policy.apps.count
  }

  @Test func `an approval that is over is revoked by whoever asks next`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let end = harness.time.seconds + 1000
    let id = try await company.make("/v1/apps", Company.app(more: #","expiresAt":\#(end)"#))
    _ = try await Self.decide(company, id, "approve")
    harness.time.advance(999)
    #expect(try await Self.appsOn(device) == 1)
    harness.time.advance(1)
    #expect(try await Self.appsOn(device) == 0)
    #expect(try await harness.send(.get, "/v1/apps/\(id)", token: company.owner).json(View.self).state == "revoked")
    let entry = try await company.auditEntries().last { $0.action == "app.revoked" }
    #expect(entry?.actor == "server")
    let late = Company.app("com.acme.late", more: #","expiresAt":\#(end)"#)
    #expect(try await harness.send(.post, "/v1/apps", token: company.owner, json: late).status == 422)
  }

  @Test func `where two people are asked, one cannot be both`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (first, second) = (try await Person(company), try await Person(company, .editor))
    let tag = try await company.tag("/v1/approval-settings")
    let set = try await harness.send(
      .put, "/v1/approval-settings", token: company.owner, headers: [.ifMatch: tag], json: #"{"twoPeople":true}"#)
    #expect(set.status == 200)
    // Asked for by the first: the second is enough, and the first is not.
    let own: String = try await first.send(.post, "/v1/apps", json: Company.app("a")).json(View.self).id
    let once = try await Self.decide(company, own, "approve", by: first)
    #expect(try once.json(View.self).state == "requested")
    #expect(try await Self.decide(company, own, "approve", by: first).status == 409)
    #expect(try await company.policy().apps.isEmpty)
    #expect(try await Self.decide(company, own, "approve", by: second).json(View.self).state == "approved")
    #expect(try await company.policy().apps.count == 1)
    // A token is nobody in particular, whether it asks or approves.
    let tokens = try await company.make("/v1/apps", Company.app("b"))
    #expect(try await Self.decide(company, tokens, "approve").status == 403)
    #expect(try await Self.decide(company, tokens, "approve", by: second).json(View.self).state == "requested")
    #expect(try await Self.decide(company, tokens, "approve", by: first).json(View.self).state == "approved")
    // There is no way around it.
    #expect(try await harness.send(.post, "/items", token: company.owner, json: Company.item("c")).status == 409)
    let path = "/items/\(own)"
    #expect(try await harness.send(.put, path, token: company.owner, json: Company.item("d")).status == 409)
    let restored = try await harness.send(
      .post, "/v1/revisions/1/restore", token: company.owner, headers: [.ifMatch: try await company.tag("/v1/policy")])
    #expect(restored.status == 200)
    let back = try await harness.send(
      .post, "/v1/revisions/3/restore", token: company.owner, headers: [.ifMatch: try await company.tag("/v1/policy")])
    #expect(back.status == 409)
    #expect(try await company.policy().apps.isEmpty)
    // Ending one takes one person, and the editor cannot end the rule.
    let no = try await second.send(
      .put, "/v1/approval-settings", json: #"{"twoPeople":false}"#,
      headers: [.ifMatch: try await company.tag("/v1/approval-settings")])
    #expect(no.status == 403)
  }

  static let invalid: [(more: String, field: String)] = [
    (#","tier":"enforced""#, "tier"), (#","tier":"best""#, "tier"), (#","minimumVersion":"x""#, "minimumVersion"),
    (#","platform":"a\u0007""#, "platform"), (#","reason":"""#, "reason"), (#","expiresAt":1"#, "expiresAt"),
    (#","state":"approved""#, "state"), (#","teamKey":"AAAA""#, "teamKey"),
  ]

  @Test(arguments: invalid)
  func `what is not valid is named`(more: String, field: String) async throws {
    struct Document: Decodable {
      struct Entry: Decodable { let field: String }
      let errors: [Entry]
    }
    let harness = try Harness()
    let company = try await harness.company()
    let reply = try await harness.send(.post, "/v1/apps", token: company.owner, json: Company.app(more: more))
    #expect(reply.status == 422)
    #expect(try reply.json(Document.self).errors.map(\.field) == [field])
  }
}
