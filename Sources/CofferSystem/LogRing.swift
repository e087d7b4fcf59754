internal import Foundation
public import Logging
internal import Synchronization

/// The newest lines of a masked log, in memory. It has the size that it may have, however long a process lives.
public final class LogRing: Sendable {
  private let lineLimit: Int
  private let byteLimit: Int
  private let kept = Mutex<[String]>([])
  private let leastLevel: Mutex<Logger.Level>

  /// - Parameters:
  ///   - lines: how many are kept; older ones are forgotten.
  ///   - bytes: of each line; the rest of it is left out.
  ///   - level: of the least that is kept, until ``level`` is set.
  public init(lines: Int, bytes: Int, level: Logger.Level = .info) {
    leastLevel = Mutex(level)
    lineLimit = lines
    byteLimit = bytes
  }

  /// The oldest first, each with its time and level in front.
  public var lines: [String] { kept.withLock { $0 } }

  /// The least that is kept from now on.
  public var level: Logger.Level {
    get { leastLevel.withLock { $0 } }
    set { leastLevel.withLock { $0 = newValue } }
  }

  /// A log whose lines are kept here, and written nowhere else.
  public func log(label: String) -> MaskedLog { MaskedLog(logger: Logger(label: label) { _ in Handler(ring: self) }) }

  fileprivate func add(_ line: String) {
    var line = line
    while line.utf8.count > byteLimit { line.removeLast() }
    kept.withLock { kept in
      if kept.count >= lineLimit { kept.removeFirst(kept.count - lineLimit + 1) }
      kept.append(line)
    }
  }

  private struct Handler: LogHandler {
    let ring: LogRing
    var metadata: Logger.Metadata = [:]

    /// The ring's own: what it is set to holds for every log at once.
    var logLevel: Logger.Level {
      get { ring.level }
      set {}
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      ring.add("\(Date().formatted(.iso8601)) \(event.level) \(event.message)")
    }
  }
}
