internal import CofferCrypto

extension Enrolment {
  /// What the key store remembers of an enrolment, so that an older copy of the vault is not taken for the present.
  public struct Anchor: Codable, Hashable, Sendable {
    public let tenant: String
    public let device: String
    /// SHA-256 of the root key, in lower-case hexadecimal.
    public let rootFingerprint: String
    public let epoch: Int64
    /// The highest revision applied in that epoch.
    public let revision: Int64
    /// What the company asks of a new passcode: known before the vault is open.
    public var passcodeMinimumLength: Int?
  }

  public var anchor: Anchor {
    Anchor(
      tenant: tenant, device: device, rootFingerprint: hexadecimal(root.fingerprint), epoch: keyset.keyset.epoch,
      revision: policy.revision, passcodeMinimumLength: policy.settings.managedSettings.passcodeMinimumLength)
  }

  /// Whether this is the enrolment that `anchor` was taken of, at whatever state.
  public func isOfSameDevice(as anchor: Anchor) -> Bool {
    let own = self.anchor
    return own.tenant == anchor.tenant && own.device == anchor.device && own.rootFingerprint == anchor.rootFingerprint
  }

  /// Whether this is the enrolment that `anchor` was taken of, at that state or a later one.
  public func isNotOlder(than anchor: Anchor) -> Bool {
    let own = self.anchor
    return isOfSameDevice(as: anchor) && (own.epoch, own.revision) >= (anchor.epoch, anchor.revision)
  }
}
