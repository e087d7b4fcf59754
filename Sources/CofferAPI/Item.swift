internal import CofferCrypto
public import CofferPolicy

/// An approved app in `/items`, without its id: the body of `POST` and `PUT`.
public struct ItemDraft: Codable, Hashable, Sendable {
  public var name: String
  public var bundleId: String
  public var teamId: String
  /// The team's public key, base64url. Without it, the app has the tier *filtered*.
  public var teamKey: String?
  /// With or without the dot.
  public var extensions: [String]
  public var actions: [String]

  public init(
    name: String, bundleId: String, teamId: String, teamKey: String? = nil, extensions: [String], actions: [String]
  ) {
    self.name = name
    self.bundleId = bundleId
    self.teamId = teamId
    self.teamKey = teamKey
    self.extensions = extensions
    self.actions = actions
  }

  /// What is wrong with a draft: the member, and why, for the person who sent it.
  public struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
    public let member: String
    public let reason: String

    public var description: String { "\(member): \(reason)" }
  }

  /// The approval that this draft asks for, with extensions as policy has them and repetitions removed.
  public func approval(id: String) throws(Fault) -> AppApproval {
    guard PolicyText.isName(name) else { throw Fault(member: "name", reason: "1 to 200 bytes, no control characters") }
    let letters = "1 to 155 letters, digits, dots, hyphens and underscores"
    guard PolicyText.isApp(AppIdentity(bundleId: bundleId, teamId: "T")) else {
      throw Fault(member: "bundleId", reason: letters)
    }
    guard PolicyText.isApp(AppIdentity(bundleId: "b", teamId: teamId)) else {
      throw Fault(member: "teamId", reason: letters)
    }
    return AppApproval(
      id: id, name: name, identity: AppIdentity(bundleId: bundleId, teamId: teamId), teamKey: try verifiedKey(),
      tier: teamKey == nil ? .filtered : .mediated, extensions: try normalizedExtensions(),
      actions: try knownActions())
  }

  private func verifiedKey() throws(Fault) -> VerifyingKey? {
    guard let teamKey else { return nil }
    guard let key = VerifyingKey(text: teamKey) else {
      throw Fault(member: "teamKey", reason: "not an Ed25519 public key in base64url without padding")
    }
    return key
  }

  private func normalizedExtensions() throws(Fault) -> [String] {
    guard extensions.count <= 1_000 else { throw Fault(member: "extensions", reason: "more than 1000") }
    let normalized = extensions.map { ($0.hasPrefix(".") ? String($0.dropFirst()) : $0).lowercased() }
    guard normalized.allSatisfy(PolicyText.isExtension) else {
      throw Fault(member: "extensions", reason: "each is 1 to 32 letters or digits, with or without a dot in front")
    }
    return Set(normalized).sorted()
  }

  private func knownActions() throws(Fault) -> [Action] {
    guard actions.count <= 100 else { throw Fault(member: "actions", reason: "more than 100") }
    let known = actions.compactMap(Action.init)
    guard known.count == actions.count else {
      throw Fault(member: "actions", reason: "known are " + Action.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return Action.allCases.filter(known.contains)
  }
}

/// An approved app in `/items`.
public struct Item: Codable, Hashable, Sendable {
  public var id: String
  public var name: String
  public var bundleId: String
  public var teamId: String
  public var teamKey: String?
  public var extensions: [String]
  public var actions: [String]

  public init(_ approval: AppApproval) {
    id = approval.id
    name = approval.name
    bundleId = approval.bundleId
    teamId = approval.teamId
    teamKey = approval.teamKey?.text
    extensions = approval.extensions
    actions = approval.actions.map(\.rawValue)
  }
}
