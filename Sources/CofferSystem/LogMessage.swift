public import Logging

/// A log message whose values are masked unless they are marked public.
///
/// ```swift
/// log.notice("refused \(name) by rule \(public: rule)")   // refused <masked> by rule r-17
/// ```
/// A masked error keeps its type, and a `SystemError` its call and code: they say what happened and hold nothing
/// private. There is no switch that unmasks: what may be seen is decided where the line is written.
public struct LogMessage: ExpressibleByStringInterpolation, Sendable {
  public let text: String

  public init(stringLiteral value: String) { text = value }
  public init(stringInterpolation: Interpolation) { text = stringInterpolation.text }

  public struct Interpolation: StringInterpolationProtocol {
    var text = ""

    public init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }
    public mutating func appendLiteral(_ literal: String) { text += literal }

    /// A private value: masked.
    public mutating func appendInterpolation(_ value: some Any) { text += "<masked>" }
    /// A value that may be read by anyone who reads the log: a code, a count, a rule's id.
    public mutating func appendInterpolation(public value: some CustomStringConvertible) { text += "\(value)" }
    /// An error: its type, and the call and code of a system error.
    public mutating func appendInterpolation(error: any Error) {
      if let system = error as? SystemError {
        text += "\(system)"
      } else {
        text += "\(type(of: error))"
      }
    }
  }
}

/// The only logger in Coffer: it takes ``LogMessage``, so a line cannot carry a private value by accident.
public struct MaskedLog: Sendable {
  private var logger: Logger

  public init(label: String, level: Logger.Level = .notice) {
    logger = Logger(label: label) { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = level
  }

  /// For tests, and for programs that route logs elsewhere.
  public init(logger: Logger) { self.logger = logger }

  /// The wrapped logger, for libraries that ask for one. What they log is theirs, so it is raised to warnings.
  public var forLibraries: Logger {
    var quiet = logger
    quiet.logLevel = max(.warning, logger.logLevel)
    return quiet
  }

  public func debug(_ message: @autoclosure () -> LogMessage) { write(.debug, message) }
  public func info(_ message: @autoclosure () -> LogMessage) { write(.info, message) }
  public func notice(_ message: @autoclosure () -> LogMessage) { write(.notice, message) }
  public func warning(_ message: @autoclosure () -> LogMessage) { write(.warning, message) }
  public func error(_ message: @autoclosure () -> LogMessage) { write(.error, message) }

  private func write(_ level: Logger.Level, _ message: () -> LogMessage) {
    logger.log(level: level, "\(message().text)")
  }
}
