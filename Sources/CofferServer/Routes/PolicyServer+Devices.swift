internal import CofferAPI
internal import CofferPolicy
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// What an enrolled device asks.
extension PolicyServer {
  /// Seconds.
  static let deviceTokenLifetime: Int64 = 900

  private static let assertionRefused = HTTPProblem(
    .invalidAssertion, "It is unknown, expired, used, for another company or not signed by the device's key.")

  /// RFC 7523, section 2.1.
  @Sendable func issueDeviceToken(_ call: Call) async throws -> Response {
    let form = try call.form(["grant_type", "assertion"])
    let (secret, now) = (BearerToken(.device), time.now().seconds)
    // Nobody has shown who they are yet: what they send is looked at where nobody waits for it, and only what a device signed
    // changes anything.
    guard form["grant_type"] == TokenRequest.grantType, let text = form["assertion"],
      let id = try? DeviceAssertion.claimedDevice(text), let device = try await store.read({ try $0.device(id: id) }),
      let assertion = try? DeviceAssertion(
        verifying: text, device: device.id, tenant: device.tenant, key: device.key, now: now)
    else { throw Self.assertionRefused }
    let forgetAt = assertion.exp + DeviceAssertion.tolerance
    try await store.write { transaction in
      // Of a device that was removed meanwhile nothing can be noted.
      guard try transaction.noteAssertion(device: device.id, id: assertion.jti, expiresAt: forgetAt, now: now) else {
        throw Self.assertionRefused
      }
      try transaction.noteDevice(id: device.id, seenAt: now)
      try transaction.insertDeviceToken(
        hash: secret.hash, device: device.id, expiresAt: now + Self.deviceTokenLifetime, now: now)
    }
    return .json(TokenResponse(accessToken: secret.text, expiresIn: Self.deviceTokenLifetime))
  }

  @Sendable func showPolicy(_ call: Call, _ device: Device) async throws -> Response {
    let published = try await published(tenant: device.tenant)
    let tag = EntityTag(digest: published.revision.digest)
    if let known = call.request.headers[.ifNoneMatch], tag.isKnown(ifNoneMatch: known) {
      return .plain(.notModified, headers: [.eTag: tag.description])
    }
    return .json(encoded: published.document, headers: [.eTag: tag.description])
  }

  /// Signed, so that "nothing changed" cannot be made up or repeated by others.
  @Sendable func showStatus(_ call: Call, _ device: Device) async throws -> Response {
    let nonce = try call.json(StatusRequest.self).nonce
    guard Status.isNonce(nonce) else { throw HTTPProblem.invalid("nonce", "must be 16 to 64 bytes in base64url") }
    let published = try await published(tenant: device.tenant)
    let groups = try await reads.value(.groups(device: device.id)) { transaction in
      // Groups that were removed since apply to nobody.
      try (transaction.deviceState(tenant: device.tenant, id: device.id)?.groups ?? [])
        .filter { try transaction.resource(.group, id: $0, tenant: device.tenant) != nil }
    }
    return .json(
      StatusResponse(
        status: try publisher.status(published, groups: groups ?? [], device: device.id, nonce: nonce)))
  }
}
