/// A company's configuration profile: how the program is to be set on its devices, beyond what policy decides.
///
/// It travels in the bundle as names and values, so that a device of an earlier version takes the policy, follows the
/// settings that it knows, and says which it ignored. A value that cannot be right is refused on the device, and no other
/// setting with it; a server takes nothing but what ``fault(in:)`` finds no fault with.
public struct ManagedSettings: Hashable, Sendable {
  /// The settings that this version knows.
  public enum Key: String, CaseIterable, Hashable, Sendable {
    /// Whether a vault must have a passcode.
    case passcodeRequired
    /// Characters that a new passcode must have at least.
    case passcodeMinimumLength
    /// The weakest class that a new file may have.
    case protectionAtLeast
    /// Minutes without use after which a vault is locked, at the latest.
    case lockAfterMinutes
    /// How much the device's own log says.
    case logLevel
    /// The file servers that a device may be connected to.
    case allowedServers
    /// Whether vaults are sealed to the company's escrow key. An administrator says `true`; the server signs the root's
    /// delegation of that key into the policy in its place.
    case escrow
  }

  public enum LogLevel: String, CaseIterable, Hashable, Sendable {
    case debug, info, notice, warning, error
  }

  public private(set) var passcodeRequired: Bool?
  public private(set) var passcodeMinimumLength: Int?
  public private(set) var protectionAtLeast: ProtectionLevel?
  public private(set) var lockAfterMinutes: Int?
  public private(set) var logLevel: LogLevel?
  public private(set) var allowedServers: [String]?
  public private(set) var isEscrowAsked = false
  /// The delegation of the escrow key, as a compact JWS that nobody has verified yet.
  public private(set) var escrowDelegation: String?
  /// Names that this version knows, with values that cannot be right.
  public private(set) var malformed: [String] = []
  /// Names that this version does not know.
  public private(set) var unknown: [String] = []

  public static let maximumCount = 100
  /// Bytes of a delegation.
  private static let maximumDelegation = 4 << 10

  /// Reads what a bundle carries.
  public init(_ values: [String: JSONValue]) {
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      guard let key = Key(rawValue: name) else {
        unknown.append(name)
        continue
      }
      if !take(key, value) { malformed.append(name) }
    }
  }

  /// Whether the value is one that the setting can have.
  private mutating func take(_ key: Key, _ value: JSONValue) -> Bool {
    switch (key, value) {
    case (.passcodeRequired, .boolean(let value)): passcodeRequired = value
    case (.passcodeMinimumLength, .integer(let value)):
      guard (1...128).contains(value) else { return false }
      passcodeMinimumLength = Int(value)
    case (.protectionAtLeast, .string(let value)):
      guard let level = ProtectionLevel(rawValue: value) else { return false }
      protectionAtLeast = level
    case (.lockAfterMinutes, .integer(let value)):
      guard (1...525_600).contains(value) else { return false }
      lockAfterMinutes = Int(value)
    case (.logLevel, .string(let value)):
      guard let level = LogLevel(rawValue: value) else { return false }
      logLevel = level
    case (.allowedServers, .array(let values)):
      let servers = values.compactMap { value -> String? in
        if case .string(let text) = value, Self.isServer(text) { text } else { nil }
      }
      guard servers.count == values.count, servers.count <= 50, PolicyText.isSet(servers) else { return false }
      allowedServers = servers
    case (.escrow, .boolean(let value)): isEscrowAsked = value
    case (.escrow, .string(let text)):
      guard text.utf8.count <= Self.maximumDelegation else { return false }
      isEscrowAsked = true
      escrowDelegation = text
    default: return false
    }
    return true
  }

  /// A host's name or address in lower case, with or without a port.
  private static func isServer(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (48...57).contains(byte) || (97...122).contains(byte) || ".-:[]".utf8.contains(byte)
      }
  }

  /// The first name, and what is wrong with it, that a server must not take; nil where there is none.
  public static func fault(in values: [String: JSONValue]) -> (name: String, reason: String)? {
    let settings = ManagedSettings(values)
    if let name = settings.unknown.first {
      return (name, "is not one of \(Key.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    if settings.escrowDelegation != nil { return (Key.escrow.rawValue, "is true or false") }
    return settings.malformed.first.map { ($0, "is not a value that this setting can have") }
  }
}

extension Settings {
  /// The configuration profile, as this version reads it.
  public var managedSettings: ManagedSettings { ManagedSettings(managed ?? [:]) }
}
