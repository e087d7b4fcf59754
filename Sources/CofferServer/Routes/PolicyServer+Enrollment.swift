internal import CofferAPI
internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import Hummingbird

/// How a device joins a company.
extension PolicyServer {
  /// A code that is unknown, expired or used: one answer for all, since who asks has not shown who they are.
  private static let codeRefused = HTTPProblem(
    .enrollmentCode, "The code is unknown, expired or used. Ask the company's administrator for a new one.")

  @Sendable func enroll(_ call: Call) async throws -> Response {
    let body = try call.json(EnrollRequest.self)
    guard let key = VerifyingKey(text: body.deviceKey) else {
      throw HTTPProblem.invalid("deviceKey", "must be an Ed25519 public key in base64url without padding")
    }
    guard body.platform.map(PolicyText.isName) ?? true else {
      throw HTTPProblem.invalid("platform", "must have 1 to 200 bytes and no control characters")
    }
    guard EnrollmentCode.isSecret(body.code) else { throw Self.codeRefused }
    let hash = Digest.sha256(body.code.utf8)
    let (id, now) = (UUID().uuidString.lowercased(), time.now().seconds)
    // A code that is none holds up nobody who changes something.
    guard try await store.read({ try $0.unusedEnrollment(hash: hash)?.isValid(at: now) == true }) else {
      throw Self.codeRefused
    }
    // One transaction: a code is used up only by a device that gets everything it needs.
    let (device, current) = try await store.write { transaction in
      guard let enrollment = try transaction.unusedEnrollment(hash: hash), enrollment.isValid(at: now) else {
        throw Self.codeRefused
      }
      let device = Device(id: id, tenant: enrollment.tenant, key: key, platform: body.platform, enrolledAt: now)
      try transaction.redeem(enrollment, for: device)
      try Ledger(tenant: device.tenant, time: now, transaction: transaction)
        .append(
          .deviceEnrolled, by: .device(id), subject: id, details: ["enrollment": enrollment.id, "key": device.key.text])
      return (device, try found(publisher.current(tenant: device.tenant, in: transaction)))
    }
    watchers.wake(tenant: device.tenant)
    // It may have been signed anew for this device.
    events.wake(tenant: device.tenant, revision: current.revision.number)
    log.notice("tenant \(public: device.tenant): device \(public: device.id) enrolled")
    let keys = current.tenant.keys
    return .json(
      EnrollResponse(
        deviceId: device.id, tenant: device.tenant, rootKey: keys.root.text, keyset: keys.keyset,
        policy: current.revision.bundle),
      status: .created)
  }
}
