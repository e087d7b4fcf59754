internal import Foundation
internal import Hummingbird

/// Who did what, and the file that proves it.
extension Console {
  var audit: [ConsoleRoute] {
    [
      .page("/console/audit", .readAudit, auditPage),
      ConsoleRoute(method: .post, path: "/console/audit/export", access: .otherChange(.readAudit, exportAudit)),
    ]
  }

  private static let entriesOnPage: Int64 = 50

  @Sendable private func auditPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let (lines, names) = try await store.read { transaction in
      let last = try transaction.lastAuditRecord(tenant: tenant)?.number ?? 0
      let end = min(max(visit.values.text("through").flatMap { Int64($0) } ?? last, 0), last)
      let start = max(0, end - Self.entriesOnPage)
      let entries = try transaction.auditRecords(tenant: tenant, after: start, limit: Int(end - start))
        .compactMap { try? JSONDecoder().decode(AuditEntry.self, from: Data($0.entry)) }
      return (
        try entries.reversed().map { (entry: $0, subject: try AuditSubject($0, tenant: tenant, in: transaction)) },
        try ActorNames(entries.map(\.actor), tenant: tenant, in: transaction)
      )
    }
    return ConsolePage("Audit", in: .audit) {
      Tag.p {
        "Everything that somebody did here, the newest first. Each entry is chained to the one before, so that none can "
          + "be changed or left out unseen."
      }
      Tag.section(.class("panel"), .aria(.labelledby, "export")) {
        Tag.h2(.id("export")) { "Export" }
        Tag.p {
          "A file with all entries and a signed end. Whoever has it can verify it without this server: "
          Tag.code { "coffer-server audit verify audit.jsonl" }
        }
        Form(visit, "/console/audit/export")("Export the audit") {}
      }
      Tag.div(.id("live-audit"), .data(.live, "")) {
        DataTable.table("Entries", ["Number", "When", "Who", "What", "About"]) {
          for line in lines { row(line.entry, line.subject, names) }
        }
      }
      if let first = lines.last?.entry.number, first > 1 {
        Paging.link("/console/audit?through=", first - 1, "Show older entries")
      }
    }
  }

  private func row(_ entry: AuditEntry, _ subject: AuditSubject, _ names: ActorNames) -> HTML {
    Tag.tr {
      DataTable.head("Number") { "\(entry.number)" }
      DataTable.cell("When") { Words.time(entry.time) }
      DataTable.cell("Who") { names.name(entry.actor) }
      DataTable.cell("What") { AuditWords.sentence(entry) }
      DataTable.cell("About") {
        if let name = subject.name {
          if let link = subject.link { Tag.a(.href(link)) { name } } else { name }
        }
        if !subject.details.isEmpty { Tag.span(.class("under")) { subject.details.joined(separator: "; ") } }
        if subject.name == nil && subject.details.isEmpty { "–" }
      }
    }
  }

  @Sendable private func exportAudit(_ visit: Visit) async throws -> Response {
    try await server.exportAudit(visit.asking(), visit.caller())
  }
}

/// The audit's actions in plain words.
enum AuditWords {
  static func sentence(_ entry: AuditEntry) -> String {
    let kind = entry.details["kind"].flatMap(ResourceKind.init(rawValue:)).map { "a \(Words.kind($0))" }
    switch (AuditAction(rawValue: entry.action), kind) {
    case (.resourceCreated?, let kind?): return "Added \(kind)"
    case (.resourceChanged?, let kind?): return "Changed \(kind)"
    case (.resourceRemoved?, let kind?): return "Removed \(kind)"
    case (let action?, _): return sentence(action)
    case (nil, _): return entry.action
    }
  }

  private static func sentence(_ action: AuditAction) -> String {
    switch action {
    case .tenantCreated: "Founded the company"
    case .administratorCreated: "Made an administrator"
    case .administratorChanged: "Changed an administrator’s role"
    case .administratorRemoved: "Removed an administrator"
    case .invitationCreated: "Invited somebody"
    case .invitationRevoked: "Withdrew an invitation"
    case .signedIn: "Signed in"
    case .signInsRefused: "Refused attempts to sign in"
    case .signedOut: "Signed out"
    case .passwordChanged: "Changed the own password"
    case .secondFactorAdded: "Added one-time codes"
    case .secondFactorRemoved: "Removed one-time codes"
    case .tokenCreated: "Made a token"
    case .tokenRevoked: "Withdrew a token"
    case .appRequested: "Requested an app"
    case .appApproved: "Approved an app"
    case .appChanged: "Changed an app"
    case .appRevoked: "Revoked an app"
    case .appRemoved: "Removed an app"
    case .settingsChanged: "Changed the settings"
    case .resourceCreated: "Added to the policy"
    case .resourceChanged: "Changed in the policy"
    case .resourceRemoved: "Removed from the policy"
    case .draftPublished: "Published a draft"
    case .revisionRestored: "Went back to an earlier revision"
    case .policyPublished: "Signed a new revision of the policy"
    case .rootKeyExported: "Exported the root key"
    case .keysRotated: "Changed the signing key"
    case .keyDelegated: "Delegated a key"
    case .enrollmentCreated: "Made an enrolment code"
    case .enrollmentRevoked: "Withdrew an enrolment code"
    case .deviceEnrolled: "Joined the company"
    case .deviceChanged: "Changed a device’s groups"
    case .deviceRemoved: "Removed a device"
    case .commandQueued: "Gave an order to a device"
    case .commandAnswered: "Answered an order"
    case .commandCancelled: "Took an order back"
    case .auditExported: "Exported the audit"
    }
  }
}
