internal import CofferPolicy
internal import Hummingbird

/// What a device decided, as it uploaded it: its own numbered chain, with what is missing in it.
extension Console {
  var deviceDecisions: [ConsoleRoute] {
    [.page("/console/devices/:id/decisions", .readDevices, decisionsPage)]
  }

  /// Decisions on a page, and those that one request looks through for them: a device may have sent 100,000.
  private static let decisionsOnPage = 50
  private static let decisionsLookedAt = 5_000

  /// Which decisions a page is about.
  private enum Filter: String, CaseIterable {
    case all, permitted, refused, keys

    var name: String {
      switch self {
      case .all: "All"
      case .permitted: "Permitted"
      case .refused: "Refused"
      case .keys: "Escrow and cleared passcodes"
      }
    }

    /// What cannot be read may be either.
    func has(_ record: DecisionRecord?) -> Bool {
      switch (self, record) {
      case (.all, _), (_, nil): true
      case (.permitted, let record?): record.reason == .permitted
      case (.refused, let record?): record.reason != nil && record.reason != .permitted
      case (.keys, let record?): record.event != nil
      }
    }
  }

  private struct Line {
    let number: Int64
    /// As the device sent it.
    let text: String
    /// Nil: it is not written as decisions are.
    let record: DecisionRecord?
    /// Whether it names another entry as the one before than the device sent.
    var isBroken = false
    /// Numbers behind this one that never came.
    var missing: ClosedRange<Int64>?
  }

  private struct Found: Sendable {
    let device: Device
    let newest: Int64
    let gaps: [ClosedRange<Int64>]
    /// The newest first; with one more than is shown, which the last one names.
    let decisions: [DeviceDecision]
    let names: PolicyNames
  }

  @Sendable private func decisionsPage(_ visit: Visit) async throws -> ConsolePage {
    let filter = visit.values.text("outcome").flatMap(Filter.init) ?? .all
    let before = visit.values.text("before").flatMap { Int64($0) } ?? .max
    let found = try await found(
      visit, before: before, limit: filter == .all ? Self.decisionsOnPage : Self.decisionsLookedAt)
    let (lines, next) = Self.lines(found, filter)
    let path: Link = "/console/devices/\(found.device.id)/decisions"
    return ConsolePage("Decisions of \(DeviceLine.name(found.device))", in: .devices) {
      Tag.p {
        "What "
        Tag.a(.href("/console/devices/\(found.device.id)")) { DeviceLine.name(found.device) }
        " decided by your policy, as it says itself: every refusal, and all by which a file left the vault. No name of a "
          + "file is in it."
      }
      Tag.div(.id("live-decisions"), .data(.live, "")) {
        if found.newest == 0 {
          Tag.p(.class("empty")) {
            "The device has sent no decision. It sends them when it connects, after it had something to decide."
          }
        } else {
          completeness(found)
          choice(filter, path)
          table(lines, found, filter)
        }
      }
      if let next {
        Tag.p {
          Tag.a(.href(path.asking(["outcome": filter == .all ? nil : filter.rawValue, "before": "\(next)"]))) {
            "Show older ones"
          }
        }
      }
    }
  }

  private func found(_ visit: Visit, before: Int64, limit: Int) async throws -> Found {
    let (id, tenant) = (try visit.call.id(), try visit.person().administrator.tenant)
    return try await store.read { transaction in
      let device = try server.found(transaction.device(tenant: tenant, id: id))
      return Found(
        device: device, newest: try transaction.decisions(device: id, before: .max, limit: 1).first?.number ?? 0,
        gaps: try transaction.decisionGaps(device: id),
        decisions: try transaction.decisions(device: id, before: before, limit: limit + 1),
        names: try PolicyNames(of: tenant, in: transaction))
    }
  }

  /// Those that the page shows, and before which number there may be more.
  private static func lines(_ found: Found, _ filter: Filter) -> ([Line], next: Int64?) {
    var lines: [Line] = []
    for (index, decision) in found.decisions.prefix(decisionsLookedAt).enumerated() {
      let record = DecisionRecord(text: decision.entry)
      guard filter.has(record) else { continue }
      if lines.count == decisionsOnPage { return (lines, lines[lines.count - 1].number) }
      var line = Line(number: decision.number, text: decision.entry, record: record)
      let older = index + 1 < found.decisions.count ? found.decisions[index + 1] : nil
      if let older, older.number == decision.number - 1 {
        line.isBroken = record.map { $0.previous != DecisionRecord.hash(of: older.entry) } ?? false
      } else if older != nil || decision.number > 1 {
        line.missing = ((older?.number ?? 0) + 1)...(decision.number - 1)
      }
      lines.append(line)
    }
    let isMore = found.decisions.count > decisionsLookedAt
    return (lines, isMore ? found.decisions[decisionsLookedAt - 1].number : nil)
  }

  private func completeness(_ found: Found) -> HTML {
    if found.newest >= PolicyServer.maximumDecisions {
      return Tag.p(.class("caution")) {
        "The server takes no more than \(PolicyServer.maximumDecisions) decisions of a device: what this one did after number "
          + "\(found.newest) is not here, uses of the escrow key included. Let it join anew, and ask why there are so many."
      }
    }
    if found.gaps.isEmpty {
      return Tag.p {
        Tag.span(.class("badge approved")) { "Complete" }
        found.newest == 1 ? " It has sent one decision." : " Every number from 1 to \(found.newest) is here."
      }
    }
    let count = found.gaps.reduce(0) { $0 + $1.count }
    return Tag.div(.class("caution")) {
      Tag.p {
        Tag.strong { count == 1 ? "1 decision is missing: " : "\(count) decisions are missing: " }
        "\(DecisionWords.numbers(found.gaps)). The device counted them and never sent them."
      }
      Tag.p {
        "A few may be lost when a program is killed, or when the device was offline for very long. Others were kept back "
          + "or taken out."
      }
      if found.gaps.count == 100 { Tag.p { "These are the first hundred gaps; there may be more." } }
    }
  }

  private func choice(_ filter: Filter, _ path: Link) -> HTML {
    Tag.form(.get, .action(path), .class("choose")) {
      Tag.div(.class("field")) {
        Tag.label(.for("outcome")) { "Show" }
        Tag.select(.id("outcome"), .name("outcome")) {
          for one in Filter.allCases {
            Tag.option(.value(one.rawValue), one == filter ? .selected : nil) { one.name }
          }
        }
      }
      Tag.p(.class("buttons")) { Tag.button(.type("submit"), .class("plain")) { "Show these" } }
    }
  }

  private func table(_ lines: [Line], _ found: Found, _ filter: Filter) -> HTML {
    if lines.isEmpty {
      return Tag.p(.class("empty")) {
        found.decisions.count > Self.decisionsLookedAt
          ? "There is none among the \(Self.decisionsLookedAt) that were looked through. Older ones follow."
          : "There is none of these."
      }
    }
    return DataTable.table("Decisions", ["Number", "When", "Who asked for what", "Outcome", "Decided by"]) {
      for line in lines {
        row(line, found)
        if let missing = line.missing, filter == .all { gap(missing) }
      }
    }
  }

  private func row(_ line: Line, _ found: Found) -> HTML {
    Tag.tr {
      DataTable.head("Number") { "\(line.number)" }
      if let record = line.record {
        DataTable.cell("When") { Words.time(record.time) }
        DataTable.cell("Who asked for what") {
          let type = record.fileExtension.map { ", .\($0)" } ?? ""
          let event = record.event.map { DecisionWords.event($0).name }
          "\(record.action.map { Words.action($0).name } ?? event ?? "–")\(type)"
          Tag.span(.class("under")) { "for \(DecisionWords.actor(record.actor, found.names))" }
        }
        DataTable.cell("Outcome") {
          if let reason = record.reason {
            let isPermitted = reason == .permitted
            Tag.span(.class("badge \(isPermitted ? "approved" : "revoked")")) { isPermitted ? "Permitted" : "Refused" }
            Tag.span(.class("under")) { DecisionWords.reason(reason) }
          } else if let event = record.event {
            Tag.span(.class("badge requested")) { "Happened" }
            Tag.span(.class("under")) { DecisionWords.event(event).meaning }
          }
          if line.isBroken { broken }
        }
        DataTable.cell("Decided by") {
          record.rules.map(DeviceText.visible).map(Words.rule).joined(separator: "; ")
          Tag.span(.class("under")) { "revision \(record.revision)" }
        }
      } else {
        DataTable.cell("When") { "–" }
        DataTable.cell("Who asked for what") { Tag.code { DeviceText.visible(String(line.text.prefix(300))) } }
        DataTable.cell("Outcome") {
          Tag.span(.class("badge unknown")) { "Not readable" }
          Tag.span(.class("under")) { "It is not written as this version of Coffer writes a decision." }
        }
        DataTable.cell("Decided by") { "–" }
      }
    }
  }

  private var broken: HTML {
    Tag.span(.class("under")) {
      "It does not follow on the decision before it: one of the two was altered, or the device began anew."
    }
  }

  private func gap(_ missing: ClosedRange<Int64>) -> HTML {
    Tag.tr {
      DataTable.head("Number") { DecisionWords.numbers(missing) }
      DataTable.cell("When") { "–" }
      DataTable.cell("Who asked for what") { "–" }
      DataTable.cell("Outcome") {
        Tag.span(.class("badge requested")) { "Missing" }
        Tag.span(.class("under")) { missing.count == 1 ? "It never came." : "They never came." }
      }
      DataTable.cell("Decided by") { "–" }
    }
  }
}
