internal import CofferAPI
internal import CofferPolicy
internal import Hummingbird

/// What people call the settings of devices, what each means, and what devices made of it.
enum SettingWords {
  /// Of a setting by the name that it is signed and reported under. A device may report names that nobody knows here.
  static func name(_ name: String) -> String {
    switch (ManagedSettings.Key(rawValue: name), name) {
    case (let key?, _): self.name(key)
    case (nil, "ownerActions"): "What the person may do"
    case (nil, "grace"): "Devices without news"
    case (nil, _): name
    }
  }

  static func name(_ key: ManagedSettings.Key) -> String {
    switch key {
    case .passcodeRequired: "Passcode"
    case .passcodeMinimumLength: "Length of a passcode"
    case .protectionAtLeast: "Protection of files"
    case .lockAfterMinutes: "Lock without use"
    case .logLevel: "What the device logs"
    case .allowedServers: "File servers"
    case .escrow: "Escrow"
    }
  }

  static func meaning(_ key: ManagedSettings.Key) -> String {
    switch key {
    case .passcodeRequired: "Whether a vault must have a passcode. With the program coffer it always has one."
    case .passcodeMinimumLength:
      "Characters at least, from 1 to 128. Counts when a passcode is set; one that is set already is not measured. "
        + "Empty: not set."
    case .protectionAtLeast:
      "The weakest class that a file may have, for what is made or changed from then on. “Complete” files can be read "
        + "while the vault is unlocked, and at no other time."
    case .lockAfterMinutes:
      "After so many minutes, from 1 to 525600. The person may choose less. Empty: not set."
    case .logLevel:
      "How much a device writes into the log that it uploads when you order it to. Names and paths are masked in it."
    case .allowedServers:
      "Which file servers a device may connect to. The program coffer connects to none so far, and ignores this."
    case .escrow:
      "Whether vaults are sealed to the company's escrow key, so that whoever holds it can let a person in who forgot "
        + "the passcode. The person is told. The key is named on the page Keys first."
    }
  }

  static let notSet = "Not set: the device decides"

  static func value(_ name: String, _ value: JSONValue) -> String {
    switch (ManagedSettings.Key(rawValue: name), value) {
    case (.passcodeRequired?, .boolean(let isRequired)): return isRequired ? "required" : "not required"
    case (.passcodeMinimumLength?, .integer(let count)): return "at least \(count) characters"
    case (.escrow?, .boolean(let isAsked)): return isAsked ? "sealed to the company's key" : "not sealed to it"
    case (.escrow?, .string): return "sealed to the company's key"
    case (.lockAfterMinutes?, .integer(let count)): return count == 1 ? "after 1 minute" : "after \(count) minutes"
    case (.protectionAtLeast?, .string(let text)):
      guard let level = ProtectionLevel(rawValue: text) else { break }
      return level == .complete ? "complete" : "\(Words.protection(level).lowercased()), or better"
    case (.logLevel?, .string(let text)):
      guard let level = ManagedSettings.LogLevel(rawValue: text) else { break }
      return self.level(level)
    case (.allowedServers?, .array(let values)):
      let servers = values.compactMap { if case .string(let text) = $0 { text } else { nil } }
      return servers.isEmpty ? "none" : "only \(RuleWords.list(servers, "and"))"
    default: break
    }
    return String(decoding: Response.encoded(value), as: UTF8.self)
  }

  static func level(_ level: ManagedSettings.LogLevel) -> String {
    switch level {
    case .debug: "everything, for looking for a fault"
    case .info: "the usual"
    case .notice: "what is worth noting"
    case .warning: "warnings and errors"
    case .error: "errors alone"
    }
  }

  static func value(_ grace: Grace) -> String {
    "warns after \(RuleWords.duration(grace.warnAfter)), refuses after \(RuleWords.duration(grace.blockAfter))"
  }

  static func treatment(_ treatment: DeviceReport.Treatment) -> (name: String, meaning: String) {
    switch treatment {
    case .honoured: ("Honoured", "It holds on the device.")
    case .ignored: ("Ignored", "The program on the device does not know it, or has nothing that it is about.")
    case .refused: ("Refused", "The program on the device knows it, and it does not hold there.")
    }
  }

  static let notSaid = "Not said"

  static func badge(_ treatment: DeviceReport.Treatment?) -> HTML {
    let style =
      switch treatment {
      case .honoured?: "approved"
      case .ignored?: "requested"
      case .refused?: "revoked"
      case nil: "unknown"
      }
    return Tag.span(.class("badge \(style)")) { treatment.map { self.treatment($0).name } ?? notSaid }
  }
}
