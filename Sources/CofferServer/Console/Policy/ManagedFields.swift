internal import CofferPolicy

/// The configuration profile of a company's devices as a form: a field of its own kind for each setting.
struct ManagedFields {
  let form: Form
  let values: [String: JSONValue]

  @HTMLBuilder var html: HTML {
    yesOrNo(.passcodeRequired)
    number(.passcodeMinimumLength)
    choice(
      .protectionAtLeast,
      ProtectionLevel.allCases.reversed().map { ($0.rawValue, Self.word(.protectionAtLeast, .string($0.rawValue))) })
    number(.lockAfterMinutes)
    choice(
      .logLevel, ManagedSettings.LogLevel.allCases.map { ($0.rawValue, Self.word(.logLevel, .string($0.rawValue))) })
    servers
    yesOrNo(.escrow)
  }

  private static func word(_ key: ManagedSettings.Key, _ value: JSONValue) -> String {
    let text = SettingWords.value(key.rawValue, value)
    return text.prefix(1).uppercased() + text.dropFirst()
  }

  private func yesOrNo(_ key: ManagedSettings.Key) -> HTML {
    choice(key, ["true", "false"].map { ($0, Self.word(key, .boolean($0 == "true"))) })
  }

  private func choice(_ key: ManagedSettings.Key, _ choices: [(value: String, label: String)]) -> HTML {
    let chosen =
      switch values[key.rawValue] {
      case .string(let text)?: text
      case .boolean(let isOn)?: "\(isOn)"
      default: ""
      }
    return form.select(
      SettingWords.name(key), key.rawValue,
      [("", SettingWords.notSet, nil)] + choices.map { ($0.value, $0.label, nil) },
      chosen: chosen, hint: SettingWords.meaning(key))
  }

  private func number(_ key: ManagedSettings.Key) -> HTML {
    let number = if case .integer(let number)? = values[key.rawValue] { "\(number)" } else { "" }
    return form.text(
      SettingWords.name(key), key.rawValue, number, kind: .code, hint: SettingWords.meaning(key), optional: true)
  }

  @HTMLBuilder private var servers: HTML {
    let own = values[ManagedSettings.Key.allowedServers.rawValue].flatMap { value -> [String]? in
      guard case .array(let values) = value else { return nil }
      return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }
    form.radios(
      SettingWords.name(.allowedServers), ManagedSettings.Key.allowedServers.rawValue,
      [("", SettingWords.notSet, nil), ("only", "Only those that are named here", nil)],
      chosen: own == nil ? "" : "only", hint: SettingWords.meaning(.allowedServers))
    form.text(
      "Names of the file servers", "servers", (own ?? []).joined(separator: " "),
      hint: "With spaces between them, such as files.example.com or files.example.com:8443. Empty: none at all.",
      optional: true)
  }

  /// What the form says. What is half said is refused.
  static func values(_ visit: Visit) throws -> [String: JSONValue] {
    var values: [String: JSONValue] = [:]
    for key in ManagedSettings.Key.allCases {
      guard let value = try value(key, visit.values) else { continue }
      guard ManagedSettings.fault(in: [key.rawValue: value]) == nil else {
        throw HTTPProblem.invalid(field(key), advice(key))
      }
      values[key.rawValue] = value
    }
    return values
  }

  private static func value(_ key: ManagedSettings.Key, _ values: FormValues) throws -> JSONValue? {
    switch key {
    case .passcodeRequired, .escrow:
      guard let text = values.text(key.rawValue) else { return nil }
      return text == "true" ? .boolean(true) : text == "false" ? .boolean(false) : .string(text)
    case .passcodeMinimumLength, .lockAfterMinutes:
      return values.text(key.rawValue).map { text in Int64(text).map { .integer($0) } ?? .string(text) }
    case .protectionAtLeast, .logLevel: return values.text(key.rawValue).map { .string($0) }
    case .allowedServers:
      let servers = values.list("servers").map { $0.lowercased() }
      if values.exact(key.rawValue) == "only" { return .texts(servers) }
      guard servers.isEmpty else {
        throw HTTPProblem.invalid("allowedServers", "does not say that only these may be used")
      }
      return nil
    }
  }

  private static func field(_ key: ManagedSettings.Key) -> String {
    key == .allowedServers ? "servers" : key.rawValue
  }

  private static func advice(_ key: ManagedSettings.Key) -> String {
    switch key {
    case .passcodeMinimumLength: "is a whole number from 1 to 128"
    case .lockAfterMinutes: "is a whole number of minutes, from 1 to 525600"
    case .passcodeRequired, .protectionAtLeast, .logLevel, .escrow: "is none of the choices"
    case .allowedServers: "are at most 50 different ones, such as files.example.com"
    }
  }
}
