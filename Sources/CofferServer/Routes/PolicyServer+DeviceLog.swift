internal import CofferAPI
internal import CofferSystem
internal import Hummingbird

/// The log that a device uploads when it is ordered to.
extension PolicyServer {
  @Sendable func takeDeviceLog(_ call: Call, _ device: Device) async throws -> Response {
    let request = try call.json(LogRequest.self)
    let lines = request.lines
    guard lines.count <= LogRequest.maximumLines, lines.allSatisfy({ $0.utf8.count <= LogRequest.maximumLine }) else {
      throw HTTPProblem.invalid(
        "lines", "are at most \(LogRequest.maximumLines), of \(LogRequest.maximumLine) bytes each")
    }
    let log = DeviceLog(lines: lines, receivedAt: time.now().seconds, sentAt: request.sentAt)
    try await write(device) { transaction in
      let kept = try transaction.deviceLog(device: device.id)
      try Delivery.demandNewer(log.sentAt, than: kept?.sentAt, keptAt: kept?.receivedAt, now: log.receivedAt)
      try transaction.keep(log, device: device.id)
    }
    return .plain(.noContent)
  }

  private struct LogView: Encodable {
    let lines: [String]
    let receivedAt: Int64
  }

  /// 404 as long as the device has uploaded none.
  @Sendable func showDeviceLog(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    let log = try await store.read { transaction in
      _ = try found(transaction.device(tenant: caller.tenant, id: id))
      return try found(transaction.deviceLog(device: id))
    }
    return .json(LogView(lines: log.lines, receivedAt: log.receivedAt))
  }
}
