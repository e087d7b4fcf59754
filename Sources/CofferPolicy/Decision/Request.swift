public import CofferCrypto

/// What somebody wants to do.
public struct Request: Hashable, Sendable {
  public var actor: Actor
  public var action: Action
  /// Absent for what concerns no single file, such as `mount`.
  public var file: FileFacts?
  public var principal: Principal

  public init(actor: Actor, action: Action, file: FileFacts?, principal: Principal) {
    self.actor = actor
    self.action = action
    self.file = file
    self.principal = principal
  }

  /// Who asks.
  public enum Actor: Hashable, Sendable {
    /// The device's owner, without an app: by a command, or in a folder of the system.
    case owner
    case app(RequestingApp)
  }
}

/// An app, as far as the device has proved what it is.
public struct RequestingApp: Hashable, Sendable {
  public var identity: AppIdentity
  public var version: String
  /// The key that the app's manifest was verified with, the executable's digest included.
  public var teamKey: VerifyingKey?
  /// How strongly this device holds this app.
  public var tier: Tier

  public init(identity: AppIdentity, version: String, teamKey: VerifyingKey?, tier: Tier) {
    self.identity = identity
    self.version = version
    self.teamKey = teamKey
    self.tier = tier
  }
}

/// What a decision needs to know of a file, all from one snapshot of it. Never its name.
public struct FileFacts: Hashable, Sendable {
  public var content: ContentType
  /// The id of its classification.
  public var classification: String?
  public var protection: ProtectionLevel
  /// Bytes.
  public var size: Int64

  public init(content: ContentType, classification: String? = nil, protection: ProtectionLevel, size: Int64) {
    self.content = content
    self.classification = classification
    self.protection = protection
    self.size = size
  }
}

/// The device, and the groups that it or its owner is in.
public struct Principal: Hashable, Sendable {
  public var device: String
  /// Absent where the company has not said it yet: a rule about groups then cannot be evaluated.
  public var groups: Set<String>?

  public init(device: String, groups: Set<String>? = []) {
    self.device = device
    self.groups = groups
  }
}

/// The circumstances of a decision. It has no clock of its own: whoever asks says what time it is.
public struct DecisionContext: Hashable, Sendable {
  /// Seconds since 1970.
  public var now: Int64
  /// Seconds since the company last confirmed the policy: ``Enrolment/age(now:)``.
  public var policyAge: Int64
  public var isDeviceUnlocked: Bool
  /// The operating system's version, such as `17.2`.
  public var osVersion: String

  public init(now: Int64, policyAge: Int64, isDeviceUnlocked: Bool, osVersion: String) {
    self.now = now
    self.policyAge = policyAge
    self.isDeviceUnlocked = isDeviceUnlocked
    self.osVersion = osVersion
  }
}
