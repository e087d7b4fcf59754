/// The newest lines of a device's own log, as it uploaded them by order. They were masked when they were written.
public struct DeviceLog: Sendable {
  /// The oldest first.
  public let lines: [String]
  /// Seconds since 1970.
  public let receivedAt: Int64
  /// By the device's clock, in milliseconds since 1970.
  public let sentAt: Int64?

  public init(lines: [String], receivedAt: Int64, sentAt: Int64?) {
    self.lines = lines
    self.receivedAt = receivedAt
    self.sentAt = sentAt
  }
}

/// What devices upload of their logs.
public protocol DeviceLogTable {
  /// Keeps a device's log in place of the one before.
  func keep(_ log: DeviceLog, device: String) throws
  func deviceLog(device: String) throws -> DeviceLog?
}
