import CofferAPI
import CofferCrypto
import CofferPolicy
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// The escrow key in the policy, and orders that carry a clearing.
@Suite struct EscrowOrderTests {
  private static let clearing = Base64URL.encode([UInt8](repeating: 7, count: 221))

  private static func put(_ company: Company, _ json: String) async throws -> Int {
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/managed-settings")]
    return try await company.harness.send(
      .put, "/v1/managed-settings", token: company.owner, headers: headers, json: json
    ).status
  }

  private static func delegate(_ company: Company, _ key: HybridKey) async throws {
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/keys")]
    let text = Base64URL.encode(key.publicKey.bytes)
    let reply = try await company.harness.send(
      .post, "/v1/keys/delegations", token: company.owner, headers: headers, json: #"{"use":"escrow","key":"\#(text)"}"#
    )
    #expect(reply.status == 200)
  }

  /// The key in the policy that the root delegated.
  private static func delegated(_ policy: Policy, _ company: Company) throws -> [UInt8]? {
    guard let text = policy.settings.managedSettings.escrowDelegation else { return nil }
    let delegation = try SignedDelegation(
      verifying: text, root: company.tenant.keys.root, tenant: company.tenant.id
    ).delegation
    #expect(delegation.use == .escrow)
    return Base64URL.decode(delegation.key)
  }

  @Test func `the policy has the root's word on the escrow key, and follows another`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (first, second) = (HybridKey(), HybridKey())
    #expect(try await Self.put(company, #"{"escrow":true}"#) == 409)
    #expect(try await Self.put(company, #"{"escrow":"a document of their own"}"#) == 422)
    // Nor by a draft.
    struct Made: Decodable { let id: String }
    let draft = try await harness.send(
      .post, "/v1/drafts", token: company.owner,
      json: """
        {"content":{"rules":[],"classifications":[],"fileTypes":[],"grace":{"warnAfter":1,"blockAfter":2},
        "settings":{"ownerActions":[],"allowFilteredTier":false,"managed":{"escrow":true}}}}
        """)
    let path = "/v1/drafts/\(try draft.json(Made.self).id)"
    let published = try await harness.send(
      .post, "\(path)/publish", token: company.owner, headers: [.ifMatch: try await company.tag(path)])
    #expect(published.status == 409)
    #expect(try await company.policy().settings.managed == nil)
    try await Self.delegate(company, first)
    let before = try await company.policy()
    #expect(before.settings.managed == nil)
    #expect(try await Self.put(company, #"{"escrow":true}"#) == 200)
    let asking = try await company.policy()
    #expect(try Self.delegated(asking, company) == first.publicKey.bytes)
    // People see what they said.
    let shown = try await harness.send(.get, "/v1/managed-settings", token: company.auditor)
    #expect(String(decoding: shown.body, as: UTF8.self) == #"{"escrow":true}"#)
    try await Self.delegate(company, second)
    let next = try await company.policy()
    #expect(next.revision == asking.revision + 1)
    #expect(try Self.delegated(next, company) == second.publicKey.bytes)
    // The way back to a revision is one to what people wrote, and not to a key of then.
    #expect(try await Self.put(company, "{}") == 200)
    #expect(try await company.policy().settings.managed == nil)
    let restored = try await harness.send(
      .post, "/v1/revisions/\(asking.revision)/restore", token: company.owner,
      headers: [.ifMatch: try await company.tag("/v1/policy")])
    #expect(restored.status == 200, "\(String(decoding: restored.body, as: UTF8.self))")
    #expect(try Self.delegated(try await company.policy(), company) == second.publicKey.bytes)
  }

  @Test func `a clearing is in its order alone, and stays when keys change`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let path = "/v1/devices/\(device.enrollment.deviceId)/commands"
    let tooLong = Base64URL.encode([UInt8](repeating: 7, count: 900))
    for body in [
      #"{"kind":"clearPasscode"}"#, #"{"kind":"lock","clearing":"\#(Self.clearing)"}"#,
      #"{"kind":"clearPasscode","clearing":"not base64url!"}"#, #"{"kind":"clearPasscode","clearing":""}"#,
      #"{"kind":"clearPasscode","clearing":"\#(tooLong)"}"#,
    ] {
      #expect(try await harness.send(.post, path, token: company.owner, json: body).status == 422, "\(body)")
    }
    _ = try await company.make(path, #"{"kind":"clearPasscode","clearing":"\#(Self.clearing)"}"#)
    let order = try #require(try await CommandRecordTests.orders(device).first)
    #expect(order.command.clearing == Self.clearing && order.command.kind == .clearPasscode)
    // A day, unless somebody says otherwise.
    #expect(order.command.notAfter - order.command.issuedAt == 86_400)
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/keys")]
    #expect(try await harness.send(.post, "/v1/keys/rotate", token: company.owner, headers: headers).status == 200)
    let again = try #require(try await CommandRecordTests.orders(device).first)
    #expect(again.command == order.command && again.document.text != order.document.text)
    // Who looks after devices sees that there is an order, and the audit who gave it; neither has what it carries.
    let list = try await harness.send(.get, path, token: company.auditor)
    #expect(!String(decoding: list.body, as: UTF8.self).contains(Self.clearing))
    #expect(try await company.auditEntries().last { $0.action == "command.queued" }?.details["kind"] == "clearPasscode")
    #expect(try await !"\(company.auditEntries())".contains(Self.clearing))
  }

  @Test func `what a device hands in for the escrow key has the lengths that it must have`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    func report(_ change: (inout EscrowReport) -> Void) async throws -> Int {
      var escrow = EscrowReport(
        tenant: company.tenant.id, vault: [UInt8](repeating: 1, count: 16), escrowKey: HybridKey().publicKey.bytes,
        encapsulatedKey: [UInt8](repeating: 2, count: 32), sealedKey: [UInt8](repeating: 3, count: 48),
        clearingKey: HybridKey().publicKey.bytes, signature: [UInt8](repeating: 4, count: 64))
      change(&escrow)
      let body = String(decoding: try JSONEncoder().encode(DeviceReport(escrow: escrow)), as: UTF8.self)
      let token = try await device.token()
      let reply = try await harness.send(.put, "/v1/device/report", token: token, json: body)
      return reply.status
    }
    #expect(try await report { _ in } == 204)
    let parts: [WritableKeyPath<EscrowReport, String>] = [
      \.vault, \.escrowKey, \.encapsulatedKey, \.sealedKey, \.clearingKey, \.signature, \.tenant,
    ]
    for part in parts {
      for text in ["", "AAA", String(repeating: "A", count: 5000)] {
        let status = try await report { $0[keyPath: part] = text }
        #expect(status == (part == \.tenant && text == "AAA" ? 204 : 422))
      }
    }
    struct Shown: Decodable { let report: DeviceReport }
    let shown = try await harness.send(
      .get, "/v1/devices/\(device.enrollment.deviceId)", token: company.auditor)
    #expect(try shown.json(Shown.self).report.escrow?.isWellFormed == true)
  }
}
