internal import CofferPolicy
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// The log that a device uploaded by order.
extension Console {
  var deviceLogs: [ConsoleRoute] {
    [
      .page("/console/devices/:id/log", .readDevices, deviceLogPage),
      ConsoleRoute(
        method: .get, path: "/console/devices/:id/log/download", access: .other(.readDevices, downloadDeviceLog)),
    ]
  }

  private static let logLinesOnPage = 200

  private struct ShownLog: Sendable {
    let line: DeviceLine
    let log: DeviceLog?
  }

  private func shownLog(_ visit: Visit) async throws -> ShownLog {
    let (id, tenant) = (try visit.call.id(), try visit.person().administrator.tenant)
    return try await store.read { transaction in
      let device = try server.found(transaction.device(tenant: tenant, id: id))
      let desired = try transaction.currentRevisionNumber(tenant: tenant) ?? 0
      return ShownLog(
        line: try DeviceLine(device, desired: desired, now: visit.now, in: transaction),
        log: try transaction.deviceLog(device: id))
    }
  }

  @Sendable private func deviceLogPage(_ visit: Visit) async throws -> ConsolePage {
    let shown = try await shownLog(visit)
    return ConsolePage("Log of \(shown.line.name)", in: .devices) {
      Tag.p {
        "The newest lines of the log that "
        shown.line.link
        " keeps of itself. It sends them only when it is ordered to. Names and paths were masked on the device; what it "
          + "wrote stands here as it came."
      }
      Tag.div(.id("live-log"), .data(.live, "")) {
        if let log = shown.log {
          facts(log, shown, visit)
        } else {
          Tag.p(.class("empty")) { "The device has uploaded no log." }
        }
        waiting(shown.line)
      }
      if visit.may(.manageDevices) { orderLog(shown, visit) }
      if let log = shown.log { lines(log, shown, visit) }
    }
  }

  private func facts(_ log: DeviceLog, _ shown: ShownLog, _ visit: Visit) -> HTML {
    Tag.dl {
      Facts.fact("Uploaded") {
        Words.ago(log.receivedAt, now: visit.now)
        ", "
        Words.time(log.receivedAt)
      }
      Facts.fact("Lines") { "\(log.lines.count)" }
      Facts.fact("As a file") {
        Tag.a(.href("/console/devices/\(shown.line.device.id)/log/download")) { "Download the log" }
      }
    }
  }

  private func waiting(_ line: DeviceLine) -> HTML? {
    guard line.pending.contains(.uploadLog) else { return nil }
    return Tag.p(.class("caution")) {
      "An order to upload the log waits for the device. This page shows it when it came."
    }
  }

  private func orderLog(_ shown: ShownLog, _ visit: Visit) -> HTML {
    let form = Form(visit, "/console/devices/\(shown.line.device.id)/order")
    return form(
      shown.log == nil ? "Order the device to upload its log" : "Order the device to upload its log again",
      style: shown.log == nil ? "" : "plain"
    ) {
      form.hidden("kind", DeviceCommand.Kind.uploadLog.rawValue)
    }
  }

  @HTMLBuilder private func lines(_ log: DeviceLog, _ shown: ShownLog, _ visit: Visit) -> HTML {
    let count = log.lines.count
    let through = min(max(visit.values.text("through").flatMap { Int($0) } ?? count, 0), count)
    let start = max(0, through - Self.logLinesOnPage)
    let path: Link = "/console/devices/\(shown.line.device.id)/log"
    Tag.section(.class("panel"), .aria(.labelledby, "lines")) {
      Tag.h2(.id("lines")) { count == 0 ? "Lines" : "Lines \(start + 1) to \(through)" }
      if count == 0 {
        Tag.p(.class("empty")) { "The log that it uploaded is empty." }
      } else {
        if start > 0 { Tag.p { Tag.a(.href(path.asking(["through": "\(start)"]))) { "Show earlier lines" } } }
        Tag.ol(.class("log"), .start(start + 1)) {
          for line in log.lines[start..<through] { Tag.li { Tag.code { DeviceText.visible(line) } } }
        }
        if through < count { Tag.p { Tag.a(.href(path)) { "Show the newest lines" } } }
      }
    }
  }

  /// One line of the file for each line of the log, whatever a device put into it.
  @Sendable private func downloadDeviceLog(_ visit: Visit) async throws -> Response {
    let shown = try await shownLog(visit)
    let log = try server.found(shown.log)
    let name = "coffer-log-\(DeviceLine.shortID(shown.line.device)).txt"
    var headers: HTTPFields = [:]
    headers[.contentType] = "text/plain; charset=utf-8"
    headers[.contentDisposition] = "attachment; filename=\"\(name)\""
    let text = log.lines.map { "\(DeviceText.visible($0))\n" }.joined()
    return .plain(.ok, headers: headers, body: ByteBuffer(string: text))
  }
}
