internal import CofferPolicy

/// What an entry of the audit is about, for people: by the name that it has now, with the way to its page where it has
/// one, and what the entry says besides.
struct AuditSubject: Sendable {
  /// Nil: the entry says all by itself, or it is about whoever did it.
  var name: String?
  var link: Link?
  var details: [String] = []

  init(_ entry: AuditEntry, tenant: String, in transaction: any StoreTransaction) throws {
    details = Self.details(entry)
    guard let subject = entry.subject else { return }
    switch AuditAction(rawValue: entry.action) {
    case .appRequested?, .appApproved?, .appChanged?, .appRevoked?, .appRemoved?:
      let app = try transaction.appRecord(tenant: tenant, id: subject)
      name = app?.approval.name ?? entry.details["bundleId"] ?? "an app that was removed"
      link = app.map { "/console/apps/\($0.approval.id)" }
    case .deviceEnrolled?, .deviceChanged?, .deviceRemoved?:
      let device = try transaction.device(tenant: tenant, id: subject)
      name = Self.name(device, subject)
      link = device.map { "/console/devices/\($0.id)" }
    case .commandQueued?, .commandAnswered?, .commandCancelled?:
      let device = Self.name(try transaction.device(tenant: tenant, id: subject), subject)
      let order = entry.details["kind"].flatMap(DeviceCommand.Kind.init).map { Words.command($0).name } ?? "Order"
      name = "\(order), \(device)"
      link = entry.details["command"].map { "/console/devices/\(subject)/orders/\($0)" }
    case .policyPublished?, .revisionRestored?:
      name = "Revision \(subject)"
      link = "/console/revisions/\(subject)"
    case .resourceCreated?, .resourceChanged?, .resourceRemoved?, .draftPublished?:
      try setResource(entry, subject, tenant, transaction)
    case .signInsRefused?:
      name = try transaction.administrator(tenant: tenant, id: subject)?.email ?? "a former administrator"
    case .administratorCreated?, .administratorChanged?, .administratorRemoved?:
      name = try transaction.administrator(tenant: tenant, id: subject)?.email ?? "a former administrator"
    case .invitationCreated?, .invitationRevoked?: name = "invitation \(subject.prefix(8))"
    case .tokenCreated?, .tokenRevoked?: name = "token \(subject.prefix(8))"
    case .enrollmentCreated?, .enrollmentRevoked?: name = "code \(subject.prefix(8))"
    // Whoever did it did it for themselves, or for the whole company.
    case .tenantCreated?, .signedIn?, .signedOut?, .passwordChanged?, .secondFactorAdded?, .secondFactorRemoved?,
      .rootKeyExported?:
      break
    case .settingsChanged?, .keysRotated?, .keyDelegated?, .auditExported?, nil: name = String(subject.prefix(64))
    }
  }

  private static func name(_ device: Device?, _ id: String) -> String {
    device.map(DeviceLine.name) ?? "removed device \(id.prefix(8))"
  }

  private mutating func setResource(
    _ entry: AuditEntry, _ id: String, _ tenant: String, _ transaction: any StoreTransaction
  ) throws {
    let kind = entry.details["kind"].flatMap(ResourceKind.init(rawValue:)) ?? .draft
    let stored = try transaction.resource(kind, id: id, tenant: tenant)
    let page: Link
    switch kind {
    case .rule: (name, page) = (id, "/console/rules/\(id)")
    case .classification: (name, page) = (id, "/console/classifications/\(id)")
    case .group: (name, page) = (id, "/console/groups/\(id)")
    case .fileType: (name, page) = (".\(id)", "/console/file-types/\(id)")
    case .deviceGroups:
      (name, page) = (Self.name(try transaction.device(tenant: tenant, id: id), id), "/console/devices/\(id)")
    case .draft:
      name = try stored.map { "“\(try $0.decoded(PolicyDraft.self).title)”" } ?? "draft \(id.prefix(8))"
      page = "/console/drafts/\(id)"
    }
    if stored != nil { link = page }
  }

  private static func details(_ entry: AuditEntry) -> [String] {
    entry.details.sorted { $0.key < $1.key }.compactMap { key, value in
      switch (AuditAction(rawValue: entry.action), key) {
      // The name has these.
      case (_, "digest"), (_, AuditEntry.before), (_, AuditEntry.after), (_, "command"), (_, "enrollment"),
        (.resourceCreated?, "kind"), (.resourceChanged?, "kind"),
        (.resourceRemoved?, "kind"), (.commandQueued?, "kind"), (.commandAnswered?, "kind"),
        (.commandCancelled?, "kind"):
        nil
      case (.signInsRefused?, "refused"): "\(value) refused"
      case (.signInsRefused?, "limited"): "\(value) too soon to be tried"
      case (.signInsRefused?, "from"): "from \(Int64(value).map(Words.moment) ?? value)"
      case (.signInsRefused?, "until"): "until \(Int64(value).map(Words.moment) ?? value)"
      case (.deviceEnrolled?, "key"): "key \(value.prefix(8))…"
      case (.commandAnswered?, "outcome"): value == "done" ? "done, says the receipt" : value
      case (.settingsChanged?, "managed"):
        "set now: "
          + (value.isEmpty
            ? "nothing"
            : RuleWords.list(value.split(separator: " ").map { SettingWords.name(String($0)).lowercased() }, "and"))
      case (.settingsChanged?, "ownerActions"):
        "the person may \(Words.actions(value.split(separator: " ").compactMap { Action(rawValue: String($0)) }))"
      case (.settingsChanged?, "warnAfter"): "warns after \(Int64(value).map(RuleWords.duration) ?? value)"
      case (.settingsChanged?, "blockAfter"): "refuses after \(Int64(value).map(RuleWords.duration) ?? value)"
      case (.settingsChanged?, "allowFilteredTier"):
        value == "true" ? "apps that are only a name may get files" : "apps that are only a name get nothing"
      case (.settingsChanged?, "twoPeople"): value == "true" ? "two people approve" : "one person approves"
      case (.keyDelegated?, "use"): value == "wipe" ? "for wipes" : "for \(value)"
      case (.keyDelegated?, "key"): "key \(value.prefix(8))…"
      case (.keysRotated?, "keyEpoch"): "epoch \(value)"
      case (_, "bundleId"), (_, "role"), (_, "was"), (_, "groups"), (_, "state"), (_, "teamId"):
        "\(Self.label(key)) \(value.isEmpty ? "none" : value)"
      default: "\(key): \(value.isEmpty ? "none" : value)"
      }
    }
  }

  private static func label(_ key: String) -> String {
    switch key {
    case "bundleId": "bundle"
    case "teamId": "team"
    case "was": "before:"
    default: "\(key):"
    }
  }
}
