public import CofferPolicy

/// An order to a device, as the server keeps it: waiting, answered, or past.
public struct CommandRecord: Sendable {
  public enum State: String, Codable, CaseIterable, Sendable {
    case pending
    /// The device answered; ``CommandRecord/receipt`` says what.
    case done, failed, refused
    case cancelled
  }

  public let command: DeviceCommand
  /// The signed order, as a compact JWS.
  public let document: String
  /// ``Actor``.
  public let createdBy: String
  public var state: State
  /// The device's signed answer, as a compact JWS.
  public var receipt: String?
  /// Seconds since 1970.
  public var answeredAt: Int64?

  public init(
    command: DeviceCommand, document: String, createdBy: String, state: State = .pending, receipt: String? = nil,
    answeredAt: Int64? = nil
  ) {
    self.command = command
    self.document = document
    self.createdBy = createdBy
    self.state = state
    self.receipt = receipt
    self.answeredAt = answeredAt
  }
}
