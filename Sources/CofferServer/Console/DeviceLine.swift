internal import CofferAPI
internal import CofferPolicy

/// A device as lists show it.
struct DeviceLine: Sendable {
  let device: Device
  let state: DeviceState
  let desired: Int64
  let pending: [DeviceCommand.Kind]
  /// Whether the device has signed that it destroyed its keys. It does nothing more then, and has nothing left to report.
  let isWiped: Bool
  let number: Int64

  static func all(
    _ tenant: String, after: Int64, limit: Int, now: Int64, in transaction: any StoreTransaction
  ) throws -> [DeviceLine] {
    let desired = try transaction.currentRevisionNumber(tenant: tenant) ?? 0
    return try transaction.devices(tenant: tenant, after: after, limit: limit).map { number, device in
      try DeviceLine(device, number, desired: desired, now: now, in: transaction)
    }
  }

  init(
    _ device: Device, _ number: Int64 = 0, desired: Int64, now: Int64, in transaction: any StoreTransaction
  ) throws {
    self.device = device
    self.number = number
    self.desired = desired
    state = try transaction.deviceState(tenant: device.tenant, id: device.id) ?? DeviceState()
    pending = try transaction.pendingCommands(tenant: device.tenant, device: device.id, now: now).map(\.command.kind)
    isWiped = try transaction.hasDoneCommand(.wipe, tenant: device.tenant, device: device.id)
  }

  /// Devices have no name but this: what they say they run, and the beginning of their id.
  static func name(_ device: Device) -> String { "\(device.platform ?? "device") \(shortID(device))" }
  static func shortID(_ device: Device) -> String { String(device.id.prefix(8)) }

  var name: String { Self.name(device) }
  var link: HTML { Tag.a(.href("/console/devices/\(device.id)")) { name } }

  var isCurrent: Bool { state.report?.appliedRevision == desired }

  /// Desired against applied. What was not said is not known.
  var badge: HTML {
    if isWiped { return Tag.span(.class("badge unknown")) { "Wiped" } }
    guard state.report?.appliedRevision != nil else { return Tag.span(.class("badge unknown")) { "Not known" } }
    return Tag.span(.class("badge \(isCurrent ? "approved" : "requested")")) { isCurrent ? "Up to date" : "Behind" }
  }

  /// The same in words, as the end of a sentence.
  var progress: String {
    if isWiped { return "the device was wiped, and decides nothing any more" }
    guard let applied = state.report?.appliedRevision else { return "the device has not said by which it decides" }
    return applied == desired ? "the device decides by it" : "the device decides by revision \(applied)"
  }
}
