/// One event of a stream (WHATWG HTML, section 9.2). It wakes its reader, and is nothing to believe.
public struct StreamEvent: Hashable, Sendable {
  /// `message` where the stream does not say.
  public var name: String
  public var data: String
  /// What to come back with as `Last-Event-ID`; empty when the stream named none.
  public var id: String

  public init(name: String, data: String, id: String) {
    self.name = name
    self.data = data
    self.id = id
  }
}

/// Reads server-sent events (WHATWG HTML, section 9.2.6) from bytes that come in pieces of any size, within bounds: what a
/// server sends beyond them is an error, and never memory.
public struct EventParser: Sendable {
  /// Bytes of a line and of an event's data. Coffer's server sends less than a hundred.
  public static let maximumLine = 4 << 10
  public static let maximumData = 16 << 10
  public static let maximumID = 64

  /// The stream is none, or has a line or an event that is too large.
  public struct Malformed: Error, Hashable, Sendable {
    public init() {}
  }

  private var line: [UInt8] = []
  private var wasCarriageReturn = false
  private var isFirstLine = true
  private var name = ""
  private var data = ""
  private var hasData = false
  private var id = ""
  /// Milliseconds that the server asks to be left alone for before the next connection, when it said so.
  public private(set) var retry: Int?

  public init() {}

  /// Takes the next bytes, and returns the events that they complete. What is not UTF-8 is repaired as the standard says.
  public mutating func take(_ bytes: some Sequence<UInt8>) throws(Malformed) -> [StreamEvent] {
    var events: [StreamEvent] = []
    for byte in bytes {
      let follows = wasCarriageReturn
      wasCarriageReturn = byte == 13
      switch byte {
      case 10 where follows: continue
      case 10, 13: if let event = try endLine() { events.append(event) }
      default:
        guard line.count < Self.maximumLine else { throw Malformed() }
        line.append(byte)
      }
    }
    return events
  }

  private mutating func endLine() throws(Malformed) -> StreamEvent? {
    defer { line.removeAll(keepingCapacity: true) }
    var text = line[...]
    if isFirstLine, text.starts(with: [0xef, 0xbb, 0xbf]) { text = text.dropFirst(3) }
    isFirstLine = false
    if text.isEmpty { return dispatch() }
    let parts = text.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    // A line that begins with a colon is a sign of life.
    if parts[0].isEmpty { return nil }
    var value = parts.count == 2 ? parts[1] : []
    if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
    try set(String(decoding: parts[0], as: UTF8.self), String(decoding: value, as: UTF8.self))
    return nil
  }

  private mutating func set(_ field: String, _ value: String) throws(Malformed) {
    switch field {
    case "event": name = value
    case "data":
      if hasData { data += "\n" }
      hasData = true
      data += value
      guard data.utf8.count <= Self.maximumData else { throw Malformed() }
    case "id":
      // It goes into a header of the next request.
      guard value.utf8.count <= Self.maximumID, value.utf8.allSatisfy({ (32...126).contains($0) }) else {
        throw Malformed()
      }
      id = value
    case "retry":
      if value.utf8.count <= 9, value.utf8.allSatisfy({ (48...57).contains($0) }) { retry = Int(value) ?? retry }
    default: break
    }
  }

  private mutating func dispatch() -> StreamEvent? {
    defer { (name, data, hasData) = ("", "", false) }
    guard hasData else { return nil }
    return StreamEvent(name: name.isEmpty ? "message" : name, data: data, id: id)
  }
}
