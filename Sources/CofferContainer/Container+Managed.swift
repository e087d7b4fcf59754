internal import CofferFiles
internal import CofferKeys
public import CofferPolicy
internal import CofferSystem
internal import Foundation

/// What a company set for the program on its devices, as far as the container can hold to it.
extension Container {
  /// The company's configuration profile; empty where there is no company, or none of it can be read.
  public var managedSettings: ManagedSettings {
    switch gate.state {
    case .enrolled(let enrolment), .outdated(let enrolment): enrolment.policy.settings.managedSettings
    case .notEnrolled, .policyMissing: ManagedSettings([:])
    }
  }

  /// Throws where the company asks for a stricter class.
  func demandAllowed(_ protection: ProtectionClass) throws {
    guard let least = managedSettings.protectionAtLeast, ProtectionLevel(protection) < least else { return }
    throw ContainerError(
      .refused,
      "the company asks for the class \(least.rawValue) or a stricter one (setting protectionAtLeast); nothing was changed"
    )
  }

  /// How long the company of the vault at `path` asks a new passcode to be, by what the key store keeps of the enrolment:
  /// known before the vault is open.
  static func passcodeMinimum(at path: String, _ keyStore: any KeyStore) -> Int? {
    guard let vault = statedID(at: path), let stored = try? keyStore.read(.enrolment, of: vault) else { return nil }
    return stored.withUnsafeBytes { bytes in
      try? JSONDecoder().decode(Enrolment.Anchor.self, from: Data(bytes)).passcodeMinimumLength
    }
  }

  /// The same by what the vault itself keeps of the enrolment: for a key store that has lost its word. A copy may be older
  /// than that word, so that the longer of the two holds.
  static func passcodeMinimum(in setting: (String) throws -> [UInt8]?) throws -> Int? {
    try setting(Gate.enrolmentSetting).flatMap { stored in
      try? JSONDecoder().decode(Enrolment.self, from: Data(stored)).policy.settings.managedSettings
        .passcodeMinimumLength
    }
  }

  /// Both of an open container.
  func passcodeMinimum(at path: String, _ keyStore: any KeyStore) -> Int? {
    [Self.passcodeMinimum(at: path, keyStore), managedSettings.passcodeMinimumLength].compactMap(\.self).max()
  }

  /// The passcode that `new` gives, which must be as long as the company asks for.
  static func checked(_ new: () throws -> SecretBytes, atLeast least: Int?) throws -> SecretBytes {
    let passcode = try new()
    guard let least else { return passcode }
    // Characters as people count them, near enough: what begins one in UTF-8.
    let count = passcode.withUnsafeBytes { bytes in bytes.count { $0 & 0xc0 != 0x80 } }
    guard count >= least else {
      throw ContainerError(
        .refused,
        "the company asks for a passcode of at least \(least) characters (setting passcodeMinimumLength); "
          + "nothing was changed")
    }
    return passcode
  }
}

extension ProtectionClass {
  init(_ level: ProtectionLevel) {
    self =
      switch level {
      case .complete: .complete
      case .completeUnlessOpen: .completeUnlessOpen
      case .untilFirstUnlock: .untilFirstUnlock
      case .none: .none
      }
  }
}
