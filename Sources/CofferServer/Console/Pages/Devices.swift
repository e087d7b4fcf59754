internal import CofferAPI
internal import CofferPolicy
internal import Foundation
internal import Hummingbird

/// Devices: what they decide by, what they said of themselves, and orders to them.
extension Console {
  var devices: [ConsoleRoute] {
    [
      .page("/console/devices", .readDevices, devicesPage),
      .page("/console/devices/:id", .readDevices, devicePage),
      .page("/console/devices/:id/wipe", .manageDevices, wipePage),
      .change("/console/devices/:id/wipe", .manageDevices, on: wipePage, wipe),
      .change("/console/devices/:id/order", .manageDevices, on: devicePage, order),
      .change("/console/devices/:id/orders/:command/cancel", .manageDevices, on: devicePage, cancelOrder),
      .change("/console/devices/:id/remove", .manageDevices, on: devicePage, removeDevice),
    ]
  }

  @Sendable private func devicesPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let after = try self.after(visit)
    let found = try await store.read {
      try DeviceLine.all(tenant, after: after, limit: PageRequest.standard + 1, now: visit.now, in: $0)
    }
    let waiting = try await store.read {
      try $0.unusedEnrollments(tenant: tenant, now: visit.now, after: 0, limit: 100).count
    }
    let lines = found.prefix(PageRequest.standard)
    let more = try next(found.map { (number: $0.number, value: $0) }, "/console/devices", visit)
    return ConsolePage("Devices", in: .devices) {
      Tag.p {
        "Each change of the policy is signed as a new revision, and devices that are connected are told at once. Here is "
          + "which revision each of them says it decides by."
      }
      Tag.div(.id("live-devices"), .data(.live, "")) {
        if lines.isEmpty {
          Tag.p(.class("empty")) {
            "No device has joined yet. "
            if waiting > 0 {
              waiting == 1 ? "A code waits to be used: " : "\(waiting) codes wait to be used: "
              "a device that joins with one appears here by itself. "
            }
            Tag.a(.href("/console/enrolment")) { waiting > 0 ? "See the codes" : "Make an enrolment code" }
            waiting > 0 ? "." : " and enter it on the device."
          }
        } else {
          DataTable.table("Devices", ["Device", "Policy", "Last seen", "Waiting"]) {
            for line in lines {
              Tag.tr {
                DataTable.head { line.link }
                DataTable.cell("Policy") {
                  line.badge
                  if let applied = line.state.report?.appliedRevision { " \(applied) of \(line.desired)" }
                }
                DataTable.cell("Last seen") {
                  line.state.lastSeenAt.map { Words.ago($0, now: visit.now) } ?? "never"
                }
                DataTable.cell("Waiting") {
                  line.pending.isEmpty
                    ? "nothing" : line.pending.map { Words.command($0).name.lowercased() }.joined(separator: ", ")
                }
              }
            }
          }
        }
      }
      more
    }
  }

  private struct Shown: Sendable {
    let line: DeviceLine
    let tenant: Tenant
    let orders: OrderLines
    let groups: [DeviceGroup]
    let groupRequest: GroupRequest?
    let groupAsker: String
    let log: DeviceLog?
    /// The newest decision that the device has sent; 0 when there is none.
    let decided: Int64
    let hasGaps: Bool
  }

  private func shown(_ visit: Visit) async throws -> Shown {
    let (id, tenant) = (try visit.call.id(), try visit.person().administrator.tenant)
    return try await store.read { transaction in
      let device = try server.found(transaction.device(tenant: tenant, id: id))
      let desired = try transaction.currentRevisionNumber(tenant: tenant) ?? 0
      let request = try transaction.resource(.deviceGroups, id: id, tenant: tenant)
        .map { try $0.decoded(GroupRequest.self) }
      let asker = try request.map {
        try ActorNames([$0.requester], tenant: tenant, in: transaction).name($0.requester)
      }
      return Shown(
        line: try DeviceLine(device, desired: desired, now: visit.now, in: transaction),
        tenant: try server.found(transaction.tenant(id: tenant)),
        orders: try OrderLines(id, tenant: tenant, limit: Self.ordersShown + 1, in: transaction),
        groups: try transaction.resources(.group, tenant: tenant).map { try $0.decoded(DeviceGroup.self) },
        groupRequest: request, groupAsker: asker ?? "", log: try transaction.deviceLog(device: id),
        decided: try transaction.decisions(device: id, before: .max, limit: 1).first?.number ?? 0,
        hasGaps: try !transaction.decisionGaps(device: id).isEmpty)
    }
  }

  @Sendable func devicePage(_ visit: Visit) async throws -> ConsolePage {
    let shown = try await shown(visit)
    return ConsolePage(shown.line.name, in: .devices) {
      jumps(shown.line, visit)
      Tag.div(.id("live-device"), .data(.live, "")) {
        DeviceFacts(line: shown.line, groups: shown.groups, now: visit.now).html
        SettingTreatments.html(shown.line, shown.tenant)
        records(shown, visit)
        orders(shown, visit)
      }
      if visit.may(.manageDevices) {
        if !shown.line.isWiped {
          groupForm(shown.line, shown.groups, asked: shown.groupRequest, by: shown.groupAsker, visit)
          steps(shown.line, visit)
        }
        removal(shown.line, visit)
      }
    }
  }

  /// What people come for is far down on a phone, and a device that is lost is in a hurry.
  private func jumps(_ line: DeviceLine, _ visit: Visit) -> HTML {
    var parts: [(Link, String)] = [("#settings", "Settings"), ("#records", "Decisions and log"), ("#orders", "Orders")]
    if visit.may(.manageDevices) {
      if !line.isWiped { parts += [("#groups", "Groups"), ("#give", "Give an order"), ("#wipe", "Wipe")] }
      parts.append(("#removal", "Remove"))
    }
    return Tag.nav(.class("jumps"), .aria(.label, "On this page")) {
      Tag.ul {
        for (link, name) in parts { Tag.li { Tag.a(.href(link)) { name } } }
      }
    }
  }

  /// What the device uploaded.
  private func records(_ shown: Shown, _ visit: Visit) -> HTML {
    let id = shown.line.device.id
    return Tag.section(.class("panel"), .aria(.labelledby, "records")) {
      Tag.h2(.id("records")) { "What the device uploaded" }
      Tag.dl {
        Facts.fact("Decisions") {
          if shown.decided == 0 {
            "None so far"
          } else {
            Tag.a(.href("/console/devices/\(id)/decisions")) { "See what it decided" }
            ", up to number \(shown.decided) "
            let isFull = shown.decided >= PolicyServer.maximumDecisions
            Tag.span(.class("badge \(shown.hasGaps || isFull ? "requested" : "approved")")) {
              isFull ? "No more are taken" : shown.hasGaps ? "Some are missing" : "Complete"
            }
          }
        }
        Facts.fact("Log") {
          if let log = shown.log {
            Tag.a(.href("/console/devices/\(id)/log")) { "See the log" }
            ", uploaded \(Words.ago(log.receivedAt, now: visit.now))"
          } else {
            Tag.a(.href("/console/devices/\(id)/log")) { "None so far: order the device to upload it" }
          }
        }
      }
    }
  }

  /// Orders on the page of a device; all are on a page of their own.
  private static let ordersShown = 10

  private func orders(_ shown: Shown, _ visit: Visit) -> HTML {
    Tag.section(.class("panel"), .aria(.labelledby, "orders")) {
      Tag.h2(.id("orders")) { "Orders" }
      orderTable(shown.orders.records.prefix(Self.ordersShown).map(\.value), shown.orders.names, visit)
      if shown.orders.records.count > Self.ordersShown {
        Tag.p { Tag.a(.href("/console/devices/\(shown.line.device.id)/orders")) { "All orders to this device" } }
      }
    }
  }

  @HTMLBuilder private func steps(_ line: DeviceLine, _ visit: Visit) -> HTML {
    let id = line.device.id
    let order = Form(visit, "/console/devices/\(id)/order")
    Tag.section(.class("panel"), .aria(.labelledby, "give")) {
      Tag.h2(.id("give")) { "Give an order" }
      Tag.p {
        "It is signed, waits for 30 days (to clear a passcode, for one), and is carried out when the device connects. The device’s signed answer stands "
          + "above, then."
      }
      Tag.div(.id("live-reported"), .data(.live, "")) {
        if line.state.report == nil { Tag.p(.class("caution")) { Words.notReported } }
      }
      if line.state.report?.escrow != nil {
        Tag.p {
          "To clear a passcode, save "
          Tag.a(.href("/v1/devices/\(id)")) { "what the device handed in" }
          " for whoever holds your escrow key. With "
          Tag.code { "coffer escrow clear" }
          " they make the clearing of it, for the field below, and a code that you tell the person yourself."
        }
      }
      order("Give the order") {
        order.radios(
          "Order", "kind",
          [DeviceCommand.Kind.refresh, .lock, .clearPasscode, .uploadLog]
            .map { ($0.rawValue, Words.command($0).name, Words.command($0).meaning) },
          chosen: DeviceCommand.Kind.refresh.rawValue)
        order.text(
          "Clearing", "clearing",
          hint: "Only to clear the passcode: what coffer escrow clear printed, for this device and once.",
          optional: true)
      }
    }
    Tag.section(.class("panel"), .aria(.labelledby, "wipe")) {
      Tag.h2(.id("wipe")) { "Wipe" }
      Tag.p { "For a device that is lost or leaves the company. You are asked once more before anything happens." }
      Tag.div(.id("live-wiping"), .data(.live, "")) {
        if line.pending.contains(.wipe) {
          Tag.p(.class("caution")) { "A wipe waits for the device. It needs no second one." }
        }
      }
      Tag.p { Tag.a(.class("button danger"), .href("/console/devices/\(id)/wipe")) { "Wipe \(line.name)…" } }
    }
  }

  private func removal(_ line: DeviceLine, _ visit: Visit) -> HTML {
    let remove = Form(visit, "/console/devices/\(line.device.id)/remove")
    return Tag.details(.id("removal"), visit.path.hasSuffix("/remove") || line.isWiped ? .open : nil) {
      Tag.summary { "Remove the device from this list" }
      Tag.p {
        line.isWiped
          ? "It was wiped: nothing of it is left to protect. Its orders and its receipt are kept, and the audit leads to "
            + "them."
          : "The device can fetch no policy and no order any more. What is on it stays: it decides by its last policy until "
            + "its time without news is over. To destroy what is on it, wipe it first."
      }
      remove("Remove \(line.name)", style: "danger") {
        if line.pending.contains(.wipe) {
          remove.checkbox(
            "Give up the wipe that waits for it", "abandonWipe", false,
            hint: "A device that is removed cannot fetch the order, and is never wiped.")
        }
      }
    }
  }

  @Sendable private func wipePage(_ visit: Visit) async throws -> ConsolePage {
    let line = try await shown(visit).line
    let form = Form(visit, "/console/devices/\(line.device.id)/wipe")
    return ConsolePage("Wipe \(line.name)", in: .devices) {
      Tag.section(.class("panel")) {
        Tag.p {
          "This destroys the keys of the vault on "
          Tag.strong { line.name }
          ". Nobody can read its files again, and edits that were not synchronised are lost."
        }
        Tag.p {
          "The order is signed, waits for 30 days, and is carried out when the device connects. The device answers with "
            + "a signed receipt, which you see on its page."
        }
        if line.state.report == nil { Tag.p(.class("caution")) { Words.notReported } }
        form("Wipe \(line.name)", style: "danger") {
          form.text(
            "Type \(DeviceLine.shortID(line.device)) to confirm", "confirmation",
            hint: "These are the first characters of the device’s id.")
        }
        Tag.p { Tag.a(.href("/console/devices/\(line.device.id)")) { "Do not wipe: go back" } }
      }
    }
  }

  @Sendable private func wipe(_ visit: Visit) async throws -> Outcome {
    let line = try await shown(visit).line
    guard visit.values.text("confirmation")?.lowercased() == DeviceLine.shortID(line.device) else {
      throw HTTPProblem.invalid("confirmation", "is not \(DeviceLine.shortID(line.device))")
    }
    return try await give(.wipe, to: line.device.id, visit)
  }

  @Sendable private func order(_ visit: Visit) async throws -> Outcome {
    guard let kind = DeviceCommand.Kind(rawValue: visit.values.exact("kind")), kind != .wipe else {
      throw HTTPProblem.invalid("kind", "is none of the orders")
    }
    return try await give(kind, clearing: visit.values.text("clearing"), to: visit.call.id(), visit)
  }

  private func give(
    _ kind: DeviceCommand.Kind, clearing: String? = nil, to device: String, _ visit: Visit
  ) async throws -> Outcome {
    _ = try await server.createCommand(
      visit.asking(.fields(["kind": .string(kind.rawValue), "clearing": clearing.map { .string($0) }])), visit.caller())
    return .see("/console/devices/\(device)", .ordered)
  }

  @Sendable private func cancelOrder(_ visit: Visit) async throws -> Outcome {
    _ = try await server.cancelCommand(visit.asking(), visit.caller())
    return .see("/console/devices/\(try visit.call.id())", .cancelled)
  }

  @Sendable private func removeDevice(_ visit: Visit) async throws -> Outcome {
    let abandons = visit.values.isOn("abandonWipe")
    _ = try await server.removeDevice(visit.asking(query: abandons ? "abandonWipe=true" : ""), visit.caller())
    return .see("/console/devices", .deviceRemoved)
  }
}
