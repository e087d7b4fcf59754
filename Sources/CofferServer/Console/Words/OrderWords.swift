internal import CofferPolicy

/// How an order to a device stands, in plain words.
enum OrderWords {
  static func isWaiting(_ record: CommandRecord, now: Int64) -> Bool {
    record.state == .pending && now <= record.command.notAfter
  }

  static func badge(_ record: CommandRecord, now: Int64) -> HTML {
    let (style, name) =
      switch record.state {
      case .pending: isWaiting(record, now: now) ? ("requested", "Waits") : ("revoked", "Too late")
      case .done: ("approved", "Done")
      case .failed: ("revoked", "Failed")
      case .refused: ("revoked", "Refused")
      case .cancelled: ("unknown", "Taken back")
      }
    return Tag.span(.class("badge \(style)")) { name }
  }

  static func meaning(_ record: CommandRecord, now: Int64) -> String {
    switch record.state {
    case .pending:
      isWaiting(record, now: now)
        ? "It waits for the device, which carries it out when it connects."
        : "Its time was over before the device answered. Nobody knows whether it was carried out."
    case .done: "The device carried it out, and signed that it did."
    case .failed: "The device could not carry it out, and does not try again."
    case .refused: "The device does not carry out such an order."
    case .cancelled: "It was taken back before the device answered."
    }
  }

  /// Why the device refused it or failed, in its own words.
  static func reason(_ record: CommandRecord) -> String? {
    record.receipt.flatMap(PolicyServer.ReceiptClaims.init)?.reason.map(DeviceText.visible)
  }
}
