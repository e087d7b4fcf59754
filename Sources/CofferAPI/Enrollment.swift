/// The body of `POST /v1/enroll`.
public struct EnrollRequest: Codable, Hashable, Sendable {
  /// ``EnrollmentCode/secret``.
  public var code: String
  /// The device's public key, base64url.
  public var deviceKey: String
  /// What the device runs, such as `linux`; for people who look at a list of devices.
  public var platform: String?

  public init(code: String, deviceKey: String, platform: String? = nil) {
    self.code = code
    self.deviceKey = deviceKey
    self.platform = platform
  }
}

/// The answer to `POST /v1/enroll`, with 201.
public struct EnrollResponse: Codable, Hashable, Sendable {
  public var deviceId: String
  /// The company's id.
  public var tenant: String
  /// The company's root public key, base64url. Its fingerprint must be the code's.
  public var rootKey: String
  /// A keyset, signed by the root key.
  public var keyset: String
  /// A policy, signed by a key of the keyset.
  public var policy: String

  public init(deviceId: String, tenant: String, rootKey: String, keyset: String, policy: String) {
    self.deviceId = deviceId
    self.tenant = tenant
    self.rootKey = rootKey
    self.keyset = keyset
    self.policy = policy
  }
}
