internal import CofferPolicy
internal import Hummingbird

/// What of a policy can be compared: of a revision, of a draft, or of what is in force.
struct PolicyState: Sendable {
  var apps: [AppApproval]
  /// By the approval's id.
  var oldestVersions: [String: String]
  var content: PolicyContent
  /// Nil where keys are none of the matter.
  var keyEpoch: Int64?

  /// A signed policy.
  init(_ policy: Policy) {
    apps = policy.apps
    oldestVersions = policy.rules.reduce(into: [:]) { versions, rule in
      guard PolicyContent.isOwn(rule.id), case .appVersion(let range)? = rule.conditions.first?.test else { return }
      versions[String(rule.id.dropFirst("minimum-version.".count))] = range.below
    }
    content = PolicyContent(of: policy)
    keyEpoch = policy.keyEpoch
  }

  /// What people write alone, which is what drafts hold.
  init(_ content: PolicyContent) {
    apps = []
    oldestVersions = [:]
    self.content = content
  }
}

/// What one policy says otherwise than another, in words.
struct PolicyDifference: Sendable {
  enum Kind: String {
    case added = "New"
    case removed = "Gone"
    case changed = "Changed"
  }

  struct Line: Equatable {
    let kind: Kind
    let text: String
  }

  let lines: [Line]

  init(from old: PolicyState, to new: PolicyState, _ names: PolicyNames) {
    let names = names.with(new.apps + old.apps, new.content.classifications + old.content.classifications)
    let words = RuleWords(names)
    var lines = Self.compared(old.apps, new.apps, \.id) { app, other in
      let version = { (state: PolicyState) in state.oldestVersions[app.id].map { ", from version \($0) on" } ?? "" }
      let (present, former) = (Self.words(app) + version(new), other.map { Self.words($0) + version(old) })
      return "App \(app.name): \(Self.now(present, former))"
    } isSame: {
      $0 == $1 && old.oldestVersions[$0.id] == new.oldestVersions[$0.id]
    }
    let (before, after) = (old.content, new.content)
    lines += Self.compared(before.rules, after.rules, \.id) { rule, other in
      "Rule \(rule.id): \(Self.now(words.sentence(rule), other.map(words.sentence)))"
    }
    lines += Self.compared(before.classifications, after.classifications, \.id) { label, other in
      "Classification \(label.id): \(Self.now("“\(label.name)”", other.map { "“\($0.name)”" }))"
    }
    lines += Self.compared(before.fileTypes, after.fileTypes, \.extension) { type, other in
      let words = { (type: FileType) in "content \(RuleWords.list(type.mediaTypes, "or"))" }
      return "File type .\(type.extension): \(Self.now(words(type), other.map(words)))"
    }
    lines += Self.settings(before, after)
    if let old = old.keyEpoch, let new = new.keyEpoch, old != new {
      lines.append(Line(kind: .changed, text: "The signing key: epoch \(new), before it \(old)."))
    }
    self.lines = lines
  }

  private static func compared<Value: Equatable>(
    _ old: [Value], _ new: [Value], _ id: KeyPath<Value, String>, _ words: (Value, Value?) -> String,
    isSame: (Value, Value) -> Bool = { $0 == $1 }
  ) -> [Line] {
    let former = Dictionary(old.map { ($0[keyPath: id], $0) }) { first, _ in first }
    let present = Set(new.map { $0[keyPath: id] })
    return new.compactMap { value in
      guard let before = former[value[keyPath: id]] else { return Line(kind: .added, text: words(value, nil)) }
      return isSame(value, before) ? nil : Line(kind: .changed, text: words(value, before))
    }
      + old.filter { !present.contains($0[keyPath: id]) }.map { Line(kind: .removed, text: words($0, nil)) }
  }

  private static func now(_ present: String, _ former: String?) -> String {
    guard let former else { return present.hasSuffix(".") ? present : "\(present)." }
    let text = present.hasSuffix(".") ? present : "\(present)."
    return "\(text) Before: \(former.hasSuffix(".") ? former : "\(former).")"
  }

  private static func words(_ app: AppApproval) -> String {
    let types = app.extensions.isEmpty ? "no file" : RuleWords.list(app.extensions.map { ".\($0)" }, "and")
    return "\(app.bundleId) of \(app.teamId), \(Words.tier(app.tier).name.lowercased())"
      + "\(app.teamKey.map { ", team key \($0.text.prefix(8))…" } ?? ", without a team key"), may "
      + "\(Words.actions(app.actions)) with \(types)"
  }

  private static func settings(_ old: PolicyContent, _ new: PolicyContent) -> [Line] {
    var lines: [Line] = []
    let (before, after) = (Set(old.settings.ownerActions), Set(new.settings.ownerActions))
    let names = { (actions: Set<Action>) in Words.actions(Action.allCases.filter(actions.contains)) }
    if before != after {
      lines.append(
        Line(kind: .changed, text: "The person with the device may \(names(after)). Before: \(names(before))."))
    }
    if old.settings.allowFilteredTier != new.settings.allowFilteredTier {
      let text =
        new.settings.allowFilteredTier ? "may get files, and might not before" : "get nothing, and might before"
      lines.append(Line(kind: .changed, text: "Apps that are only a name \(text)."))
    }
    lines += managed(old.settings.managed ?? [:], new.settings.managed ?? [:])
    if old.grace != new.grace {
      let (now, before) = (SettingWords.value(new.grace), SettingWords.value(old.grace))
      lines.append(Line(kind: .changed, text: "A device without news \(now). Before: it \(before)."))
    }
    return lines
  }

  private static func managed(_ old: [String: JSONValue], _ new: [String: JSONValue]) -> [Line] {
    Set(old.keys).union(new.keys).sorted().compactMap { name in
      switch (old[name], new[name]) {
      case (let before?, let after?):
        before == after
          ? nil : Line(kind: .changed, text: "\(setting(name, after)) Before: \(SettingWords.value(name, before)).")
      case (nil, let after?): Line(kind: .added, text: setting(name, after))
      case (let before?, nil): Line(kind: .removed, text: setting(name, before))
      case (nil, nil): nil
      }
    }
  }

  private static func setting(_ name: String, _ value: JSONValue) -> String {
    "Setting of devices, \(SettingWords.name(name).lowercased()): \(SettingWords.value(name, value))."
  }

  /// - Parameter nothing: what to say when there is no difference.
  func html(nothing: String) -> HTML {
    if lines.isEmpty { return Tag.p { nothing } }
    return Tag.ul(.class("differences")) {
      for line in lines {
        Tag.li {
          Tag.span(.class("badge \(Self.style(line.kind))")) { line.kind.rawValue }
          " \(line.text)"
        }
      }
    }
  }

  private static func style(_ kind: Kind) -> String {
    switch kind {
    case .added: "approved"
    case .removed: "revoked"
    case .changed: "requested"
    }
  }
}
