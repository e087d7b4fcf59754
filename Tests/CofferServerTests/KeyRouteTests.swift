import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// A company's keys: a new epoch, the root key's one export, delegations.
@Suite struct KeyRouteTests {
  @Test func `a rotation is a new epoch that devices take, and the old key signs nothing more`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let enrolment = try Enrolment(
      tenant: company.tenant.id, device: device.enrollment.deviceId, server: "http://localhost",
      root: company.tenant.keys.root, fingerprint: company.tenant.keys.root.fingerprint, pinnedCertificate: nil,
      keyset: device.enrollment.keyset, bundle: device.enrollment.policy, now: harness.time.seconds)
    let old = try KeySealing(serverKey: harness.directory.serverKey)
      .open(company.tenant.keys.sealedSigning, tenant: company.tenant.id, use: .signing)
    // Whoever has the old key runs ahead.
    var ahead = enrolment.policy
    ahead.revision = 1_000_000
    ahead.settings.ownerActions = Action.allCases
    let forged = try PolicyBundle(issuing: ahead, key: old).document.text
    let fooled = try enrolment.accepting(
      bundle: forged, keyset: device.enrollment.keyset, now: harness.time.seconds)

    #expect(try await harness.send(.post, "/v1/keys/rotate", token: company.owner).status == 428)
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/keys")]
    #expect(try await harness.send(.post, "/v1/keys/rotate", token: company.owner, headers: headers).status == 200)
    #expect(try await harness.send(.post, "/v1/keys/rotate", token: company.owner, headers: headers).status == 412)
    let answer = try await harness.send(.get, "/v1/device/policy", token: try await device.token())
      .json(PolicyResponse.self)
    for held in [enrolment, fooled] {
      let next = try held.accepting(bundle: answer.policy, keyset: answer.keyset, now: harness.time.seconds)
      #expect(next.policy.keyEpoch == 2 && next.policy.revision == 2)
      #expect(throws: PolicyRefusal.self) {
        try next.accepting(bundle: forged, keyset: answer.keyset, now: harness.time.seconds)
      }
    }
    // The status is of the new epoch, too.
    let nonce = Base64URL.encode([UInt8](repeating: 1, count: 32))
    let status = try await harness.send(
      .post, "/v1/device/status", token: try await device.token(), json: #"{"nonce":"\#(nonce)"}"#)
    let next = try enrolment.accepting(bundle: answer.policy, keyset: answer.keyset, now: harness.time.seconds)
    _ = try next.accepting(
      status: status.json(StatusResponse.self).status, nonce: nonce, now: harness.time.seconds)
  }

  @Test func `the root key is handed out once, to a person who gives the password again`() async throws {
    struct Export: Decodable {
      let rootKey: String
      let costExponent: Int
      let salt: String
      let sealed: String
    }
    let harness = try Harness()
    let company = try await harness.company()
    let (owner, editor) = (try await Person(company), try await Person(company, .editor))
    func export(_ person: Person, _ password: String = Person.password) async throws -> Reply {
      try await person.send(
        .post, "/v1/keys/root-export", json: #"{"password":"\#(password)","passphrase":"a phrase for the safe"}"#)
    }
    #expect(try await export(editor).status == 403)
    #expect(try await export(owner, "wrong horse battery").status == 401)
    let reply = try await export(owner)
    #expect(reply.status == 200)
    let made = try reply.json(Export.self)
    let salt = try #require(Base64URL.decode(made.salt))
    let key = try PasscodeDerivation(costExponent: made.costExponent, salt: salt)
      .key(for: SecretsTests.secret("a phrase for the safe"))
    let seed = try Sealing.open(
      try #require(Base64URL.decode(made.sealed)), key: key,
      authenticating: Array("coffer root key:\(company.tenant.id)".utf8))
    let root = try SigningKey(seed: seed.withUnsafeBytes { SecretBytes(copying: $0) })
    #expect(root.verifyingKey == company.tenant.keys.root && made.rootKey == root.verifyingKey.text)
    #expect(try await export(owner).status == 409)
    #expect(try await company.auditEntries().last?.action == "root-key.exported")
  }

  @Test func `an escrow key is delegated by the root for a year`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    func delegate(_ json: String) async throws -> Int {
      let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/keys")]
      return try await harness.send(
        .post, "/v1/keys/delegations", token: company.owner, headers: headers, json: json
      ).status
    }
    let key = Base64URL.encode(HybridKey().publicKey.bytes)
    #expect(try await delegate(#"{"use":"escrow"}"#) == 422)
    #expect(try await delegate(#"{"use":"wipe","key":"\#(key)"}"#) == 422)
    #expect(
      try await delegate(#"{"use":"escrow","key":"\#(Base64URL.encode([UInt8](repeating: 0, count: 32)))"}"#) == 422)
    for _ in 0..<2 { #expect(try await delegate(#"{"use":"escrow","key":"\#(key)"}"#) == 200) }
    let tenant = try #require(try await harness.store.read { try $0.tenant(id: company.tenant.id) })
    #expect(tenant.delegations.count == 1)
    let signed = try SignedDelegation(
      verifying: tenant.delegations[0].document, root: tenant.keys.root, tenant: tenant.id)
    #expect(signed.delegation.use == .escrow && signed.delegation.key == key)
    #expect(throws: PolicyRefusal.otherTenant) {
      try SignedDelegation(verifying: tenant.delegations[0].document, root: tenant.keys.root, tenant: "other")
    }
  }
}
