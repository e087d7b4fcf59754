public import CofferCrypto

/// An order to one device. Times are seconds since 1970.
public struct DeviceCommand: Codable, Hashable, Sendable {
  public enum Kind: String, Codable, CaseIterable, Hashable, Sendable {
    case lock
    /// Destroys the vault's keys. Signed by the root key or one that it delegated for this.
    case wipe
    /// Lets whoever has a code set a new passcode: ``DeviceCommand/clearing`` was made with the company's escrow key.
    case clearPasscode
    /// Fetches the policy and reports.
    case refresh
    /// Uploads the device's own log, masked.
    case uploadLog
  }

  public var tenant: String
  /// The device's id.
  public var audience: String
  /// Unique: a device carries an order out once, and its receipt names it.
  public var id: String
  public var kind: Kind
  public var issuedAt: Int64
  /// A device does not begin to carry it out later than this.
  public var notAfter: Int64
  /// Of ``Kind/clearPasscode`` alone: what the holder of the escrow key made for this device, base64url.
  public var clearing: String?

  /// Bytes of ``clearing`` as text.
  public static let maximumClearing = 1024

  public init(
    tenant: String, audience: String, id: String, kind: Kind, issuedAt: Int64, notAfter: Int64, clearing: String? = nil
  ) {
    self.tenant = tenant
    self.audience = audience
    self.id = id
    self.kind = kind
    self.issuedAt = issuedAt
    self.notAfter = notAfter
    self.clearing = clearing
  }

  public func validate() throws(PolicyRefusal) {
    guard PolicyText.isIdentifier(tenant), PolicyText.isIdentifier(audience), PolicyText.isIdentifier(id),
      issuedAt >= 0, notAfter > issuedAt, clearing.map({ kind == .clearPasscode && Self.isClearing($0) }) ?? true
    else { throw .malformed("command") }
  }
}

extension DeviceCommand {
  /// Whether `text` may be a clearing. What it holds, its device says.
  public static func isClearing(_ text: String) -> Bool {
    (1...maximumClearing).contains(text.utf8.count) && Base64URL.decode(text) != nil
  }

  /// What a document says that nobody verifies: for whoever signed it.
  public static func statedClearing(in document: String) -> String? {
    let parts = document.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let payload = Base64URL.decode(parts[1]),
      let command = try? StrictJSON.decode(DeviceCommand.self, from: payload, "command")
    else { return nil }
    return command.clearing
  }
}

/// A command with the signature of one of its company's keys, or of a key that the root delegated.
public struct SignedCommand: Hashable, Sendable {
  public let command: DeviceCommand
  public let document: SignedDocument

  public init(issuing command: DeviceCommand, key: SigningKey) throws(PolicyRefusal) {
    try command.validate()
    self.command = command
    document = try SignedDocument(signing: StrictJSON.encode(command), as: .command, with: key)
  }

  /// Verifies that the company gave the order to `device`: a wipe by `delegation`, anything else by `keyset`. The caller
  /// keeps the ids of what it carried out.
  public init(
    verifying text: String, device: String, keyset: Keyset, delegation: SignedDelegation?, now: Int64
  ) throws(PolicyRefusal) {
    let delegated = delegation.flatMap { delegation -> VerifyingKey? in
      let holds =
        delegation.delegation.use == .wipe && delegation.delegation.tenant == keyset.tenant
        && now <= delegation.delegation.notAfter
      return holds ? VerifyingKey(text: delegation.delegation.key) : nil
    }
    document = try SignedDocument(verifying: text, as: .command) { id in
      delegated.flatMap { $0.keyID == id ? $0 : nil } ?? keyset.key(id)
    }
    command = try StrictJSON.decode(DeviceCommand.self, from: document.payload, "command")
    try command.validate()
    guard command.tenant == keyset.tenant else { throw .otherTenant }
    guard command.audience == device else { throw .otherAudience }
    guard now <= command.notAfter else { throw .expired(.command) }
    // Neither kind of key stands for the other: one that leaks gives no more than it was for.
    guard (command.kind == .wipe) == (document.keyID == delegated?.keyID) else { throw .unknownKey(.command) }
  }
}

/// A device's signed answer to a command. Times are seconds since 1970.
public struct CommandReceipt: Codable, Hashable, Sendable {
  public enum Outcome: String, Codable, CaseIterable, Hashable, Sendable {
    case done
    /// The device could not, and will not try again.
    case failed
    /// The device does not do this.
    case refused
  }

  public var tenant: String
  public var device: String
  /// ``DeviceCommand/id``.
  public var command: String
  public var kind: DeviceCommand.Kind
  public var outcome: Outcome
  public var time: Int64
  /// For people: why it was refused or failed.
  public var reason: String?

  public init(
    tenant: String, device: String, command: String, kind: DeviceCommand.Kind, outcome: Outcome, time: Int64,
    reason: String? = nil
  ) {
    self.tenant = tenant
    self.device = device
    self.command = command
    self.kind = kind
    self.outcome = outcome
    self.time = time
    self.reason = reason
  }

  public func signed(with key: SigningKey) throws(PolicyRefusal) -> String {
    try SignedDocument(signing: StrictJSON.encode(self), as: .receipt, with: key).text
  }

  /// What a text claims to be a receipt of, before anything is verified: good for finding the order and the device's key, and for
  /// nothing else.
  public static func claimed(_ text: String) throws(PolicyRefusal) -> (device: String, command: String) {
    guard text.utf8.count <= maximumSize else { throw .oversize }
    let receipt = try SignedDocument.claims(CommandReceipt.self, text, as: .receipt)
    guard PolicyText.isIdentifier(receipt.device), PolicyText.isIdentifier(receipt.command) else {
      throw .malformed("receipt")
    }
    return (receipt.device, receipt.command)
  }

  /// Of the text, in bytes.
  private static let maximumSize = 4096

  /// Verifies that the device with `key` signed a receipt for `command`.
  public init(verifying text: String, of command: DeviceCommand, key: VerifyingKey) throws(PolicyRefusal) {
    guard text.utf8.count <= Self.maximumSize else { throw .oversize }
    let document = try SignedDocument(verifying: text, as: .receipt) { $0 == key.keyID ? key : nil }
    let receipt = try StrictJSON.decode(CommandReceipt.self, from: document.payload, "receipt")
    guard receipt.tenant == command.tenant else { throw .otherTenant }
    guard receipt.device == command.audience else { throw .otherAudience }
    guard receipt.command == command.id, receipt.kind == command.kind, receipt.time >= 0 else { throw .otherNonce }
    guard receipt.reason.map(PolicyText.isName) ?? true else { throw .malformed("receipt") }
    self = receipt
  }
}
