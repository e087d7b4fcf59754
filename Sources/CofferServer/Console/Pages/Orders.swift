internal import CofferPolicy
internal import Hummingbird

/// Orders to a device, and what it answered. They are kept also when the device is gone.
extension Console {
  var orders: [ConsoleRoute] {
    [
      .page("/console/devices/:id/orders", .readDevices, ordersPage),
      .page("/console/devices/:id/orders/:command", .readDevices, orderPage),
    ]
  }

  private static let ordersOnPage = 50

  /// What lists of orders need to name who gave them.
  struct OrderLines: Sendable {
    /// The newest first.
    let records: [Numbered<CommandRecord>]
    let names: ActorNames

    init(
      _ device: String, tenant: String, before: Int64 = .max, limit: Int, in transaction: any StoreTransaction
    ) throws {
      records = try transaction.commands(tenant: tenant, device: device, before: before, limit: limit)
      names = try ActorNames(records.map(\.value.createdBy), tenant: tenant, in: transaction)
    }
  }

  @Sendable private func ordersPage(_ visit: Visit) async throws -> ConsolePage {
    let (id, tenant) = (try visit.call.id(), try visit.person().administrator.tenant)
    let before = visit.values.text("before").flatMap { Int64($0) } ?? .max
    let (device, found) = try await store.read { transaction in
      let device = try transaction.device(tenant: tenant, id: id)
      let isKnown = try device != nil || transaction.lastCommandNumber(tenant: tenant, device: id) > 0
      guard isKnown else { throw HTTPProblem.notFound }
      return (
        device,
        try OrderLines(id, tenant: tenant, before: before, limit: Self.ordersOnPage + 1, in: transaction)
      )
    }
    let lines = found.records.prefix(Self.ordersOnPage)
    return ConsolePage("Orders to \(Self.name(device, id))", in: .devices) {
      Tag.p {
        "Every order that this device was given, the newest first, and what it answered. "
        link(device)
      }
      Tag.div(.id("live-orders"), .data(.live, "")) { orderTable(lines.map(\.value), found.names, visit) }
      if found.records.count > Self.ordersOnPage, let last = lines.last {
        Tag.p {
          Tag.a(.href(("/console/devices/\(id)/orders" as Link).asking(["before": "\(last.number)"]))) {
            "Show older ones"
          }
        }
      }
    }
  }

  private static func name(_ device: Device?, _ id: String) -> String {
    device.map(DeviceLine.name) ?? "removed device \(id.prefix(8))"
  }

  private func link(_ device: Device?) -> HTML {
    guard let device else { return .text("The device itself was removed. Its orders are kept.") }
    return Tag.a(.href("/console/devices/\(device.id)")) { "Go to the device" }
  }

  func orderTable(_ records: [CommandRecord], _ names: ActorNames, _ visit: Visit) -> HTML {
    if records.isEmpty { return Tag.p(.class("empty")) { "This device was given no order." } }
    let isAnyWaiting = visit.may(.manageDevices) && records.contains { OrderWords.isWaiting($0, now: visit.now) }
    return DataTable.table(
      "Orders", ["Order", "State", "Given", "Answered"] + (isAnyWaiting ? ["Take back"] : [])
    ) {
      for record in records { row(record, names, visit, canTakeBack: isAnyWaiting) }
    }
  }

  private func row(_ record: CommandRecord, _ names: ActorNames, _ visit: Visit, canTakeBack: Bool) -> HTML {
    let (command, name) = (record.command, Words.command(record.command.kind).name)
    return Tag.tr {
      DataTable.head {
        Tag.a(.href("/console/devices/\(command.audience)/orders/\(command.id)")) { name }
      }
      DataTable.cell("State") {
        OrderWords.badge(record, now: visit.now)
        if let reason = OrderWords.reason(record) { Tag.span(.class("under")) { "“\(reason)”" } }
      }
      DataTable.cell("Given") {
        Words.time(command.issuedAt)
        Tag.span(.class("under")) { "by \(names.name(record.createdBy))" }
      }
      DataTable.cell("Answered") {
        if let time = record.answeredAt { Words.time(time) } else { "–" }
      }
      if canTakeBack {
        DataTable.cell("Take back") {
          if OrderWords.isWaiting(record, now: visit.now) {
            let form = Form(visit, "/console/devices/\(command.audience)/orders/\(command.id)/cancel")
            form("Take back “\(name)”", style: "plain") {}
          } else {
            "–"
          }
        }
      }
    }
  }

  @Sendable private func orderPage(_ visit: Visit) async throws -> ConsolePage {
    let (id, tenant) = (try visit.call.id(), try visit.person().administrator.tenant)
    guard let command = visit.call.parameters.get("command"), PolicyText.isIdentifier(command) else {
      throw HTTPProblem.notFound
    }
    let (device, record, names) = try await store.read { transaction in
      let record = try server.found(transaction.command(tenant: tenant, id: command))
      guard record.command.audience == id else { throw HTTPProblem.notFound }
      return (
        try transaction.device(tenant: tenant, id: id), record,
        try ActorNames([record.createdBy], tenant: tenant, in: transaction)
      )
    }
    let title = "\(Words.command(record.command.kind).name): order to \(Self.name(device, id))"
    return ConsolePage(title, in: .devices) {
      Tag.div(.id("live-order"), .data(.live, "")) {
        Tag.section(.class("panel"), .aria(.labelledby, "order")) {
          Tag.h2(.id("order")) { "The order" }
          Tag.p { Words.command(record.command.kind).meaning }
          facts(record, names, visit)
          Tag.p { Tag.a(.href("/console/devices/\(id)/orders")) { "All orders to this device" } }
        }
        if let receipt = record.receipt { self.receipt(receipt, record) }
      }
    }
  }

  private func facts(_ record: CommandRecord, _ names: ActorNames, _ visit: Visit) -> HTML {
    Tag.dl {
      Facts.fact("State") {
        OrderWords.badge(record, now: visit.now)
        " \(OrderWords.meaning(record, now: visit.now))"
      }
      if let reason = OrderWords.reason(record) { Facts.fact("Reason") { "“\(reason)”, says the device" } }
      Facts.fact("Given by") { names.name(record.createdBy) }
      Facts.fact("Given") { Words.time(record.command.issuedAt) }
      Facts.fact("Waits until") { Words.time(record.command.notAfter) }
      if let time = record.answeredAt { Facts.fact("Answered") { Words.time(time) } }
      if let time = record.receipt.flatMap(PolicyServer.ReceiptClaims.init)?.time {
        Facts.fact("Carried out") {
          Words.time(time)
          " by the device’s clock"
        }
      }
      Facts.fact("Id") { Tag.code { record.command.id } }
    }
  }

  private func receipt(_ receipt: String, _ record: CommandRecord) -> HTML {
    Tag.section(.class("panel"), .aria(.labelledby, "receipt")) {
      Tag.h2(.id("receipt")) { "The receipt" }
      Tag.p {
        "The device signed its answer with its own key, and the server verified it when it came. This is the document, "
          + "for whoever wants to verify it again (a JWS, RFC 7515):"
      }
      Tag.p(.class("secret")) {
        Tag.code(.id("document"), .tabIndex(0)) { receipt }
        Tag.button(.type("button"), .class("plain"), .data(.copy, "document")) { "Copy the receipt" }
      }
    }
  }
}
