/// The answer to `GET /v1/device/commands`.
public struct OrdersResponse: Codable, Hashable, Sendable {
  /// Signed orders, the oldest first.
  public var commands: [String]
  /// What lets the key that signs wipes do so.
  public var delegations: [String]
  /// A keyset, signed by the root key.
  public var keyset: String

  public init(commands: [String], delegations: [String], keyset: String) {
    self.commands = commands
    self.delegations = delegations
    self.keyset = keyset
  }
}

/// The body of `POST /v1/device/receipts`.
public struct ReceiptRequest: Codable, Hashable, Sendable {
  /// A device's signed answer to an order.
  public var receipt: String

  public init(receipt: String) { self.receipt = receipt }
}

/// The body of `POST /v1/device/decisions`.
public struct DecisionsRequest: Codable, Hashable, Sendable {
  public struct Entry: Codable, Hashable, Sendable {
    /// The device's own count, from 1 without gaps.
    public var number: Int64
    /// What was decided, as the device wrote it.
    public var entry: String

    public init(number: Int64, entry: String) {
      self.number = number
      self.entry = entry
    }
  }

  public var entries: [Entry]

  public init(entries: [Entry]) { self.entries = entries }
}

/// The answer to `POST /v1/device/decisions`.
public struct DecisionsResponse: Codable, Hashable, Sendable {
  /// The highest number up to which nothing is missing.
  public var completeThrough: Int64

  public init(completeThrough: Int64) { self.completeThrough = completeThrough }
}

/// The body of `PUT /v1/device/log`: the newest lines of a device's own log, masked as it was written.
public struct LogRequest: Codable, Hashable, Sendable {
  /// Lines at most, and bytes of each.
  public static let maximumLines = 1_000
  public static let maximumLine = 400

  /// The oldest first.
  public var lines: [String]
  /// When it was sent, as in ``DeviceReport/sentAt``.
  public var sentAt: Int64?

  public init(lines: [String], sentAt: Int64? = nil) {
    self.lines = lines
    self.sentAt = sentAt
  }
}
