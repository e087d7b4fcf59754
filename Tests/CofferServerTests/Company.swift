import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// A company in a ``Harness`` with a token of each role.
struct Company: Sendable {
  let harness: Harness
  let tenant: Tenant
  let owner: String
  let editor: String
  let auditor: String

  /// The body of an item that every check accepts.
  static func item(
    _ bundleId: String = "com.acme.editor", name: String = "Acme Editor", extensions: String = #"[".pdf",".docx"]"#
  ) -> String {
    """
    {"name":"\(name)","bundleId":"\(bundleId)","teamId":"ACME","extensions":\(extensions),"actions":["openIn","edit"]}
    """
  }

  func add(_ bundleId: String = "com.acme.editor") async throws -> Item {
    let reply = try await harness.send(.post, "/items", token: owner, json: Self.item(bundleId))
    #expect(reply.status == 201)
    return try reply.json()
  }

  func code() async throws -> EnrollmentCode {
    try await harness.administration.createEnrollment(tenant: tenant.id).code
  }

  func enroll(_ key: SigningKey = SigningKey()) async throws -> EnrolledDevice {
    let reply = try await harness.send(
      .post, "/v1/enroll", json: Self.enrollment(try await code().secret, key: key))
    #expect(reply.status == 201)
    return EnrolledDevice(company: self, key: key, enrollment: try reply.json())
  }

  static func enrollment(_ secret: String, key: SigningKey = SigningKey()) -> String {
    #"{"code":"\#(secret)","deviceKey":"\#(Base64URL.encode(key.verifyingKey.bytes))","platform":"linux"}"#
  }

  /// The policy that a device gets now, verified down from the root key.
  func policy() async throws -> Policy {
    let tenant = try #require(try await harness.store.read { try $0.tenant(id: self.tenant.id) })
    return try verified(try await harness.current(tenant), keyset: tenant.keys.keyset)
  }

  func verified(_ revision: Revision, keyset: String) throws -> Policy {
    let keyset = try SignedKeyset(verifying: keyset, root: tenant.keys.root)
    #expect(keyset.keyset.tenant == tenant.id)
    let bundle = try PolicyBundle(verifying: revision.bundle, keyset: keyset.keyset)
    #expect(bundle.digest == revision.digest)
    #expect(bundle.policy.revision == revision.number)
    return bundle.policy
  }
}

/// A device of a ``Company``.
struct EnrolledDevice: Sendable {
  let company: Company
  let key: SigningKey
  let enrollment: EnrollResponse

  func assertion(_ change: (inout DeviceAssertion) -> Void = { _ in }, key: SigningKey? = nil) throws -> String {
    var assertion = DeviceAssertion(
      device: enrollment.deviceId, tenant: enrollment.tenant, now: company.harness.time.seconds,
      id: UUID().uuidString)
    change(&assertion)
    return try assertion.signed(with: key ?? self.key)
  }

  static func form(_ assertion: String, grant: String = TokenRequest.grantType) -> String {
    "grant_type=\(grant.replacing(":", with: "%3A"))&assertion=\(assertion)"
  }

  func requestToken(_ assertion: String) async throws -> Reply {
    try await company.harness.send(
      .post, "/v1/device/token", json: Self.form(assertion), type: "application/x-www-form-urlencoded")
  }

  func token() async throws -> String {
    let reply = try await requestToken(assertion())
    #expect(reply.status == 200)
    let answer = try reply.json(TokenResponse.self)
    #expect(answer.tokenType == "Bearer")
    #expect(answer.expiresIn == PolicyServer.deviceTokenLifetime)
    return answer.accessToken
  }
}
