internal import CofferSystem
internal import Foundation
internal import Synchronization

/// Results go to standard output, everything else to standard error.
enum Output {
  /// Throws where a result could not be written, so that a full disk is not taken for success.
  static func finish() throws {
    guard let error = Session.present.outputFailure.withLock({ $0 }) else { return }
    // Another full disk than the vault's.
    throw error.isFull ? Failure(code: 74, text: "the result cannot be written: \(error.description)") : error
  }

  static func line(_ text: String) { write(Array(text.utf8) + [10]) }

  /// A line that holds a name: bytes as they are for a program, with control characters made visible for a person.
  static func name(_ prefix: String = "", _ name: [UInt8], suffix: String = "") {
    let isTerminal = Session.present.output.isTerminal
    write(Array(prefix.utf8) + (isTerminal ? Array(PathText.shown(name).utf8) : name) + Array(suffix.utf8) + [10])
  }

  static func json(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    write(Array(try encoder.encode(value)) + [10])
  }

  /// Something the person should know beside the result.
  static func note(_ text: String) { error("coffer: \(text)\n") }

  /// Text for standard error as it is. Whether it can be written changes nothing.
  static func error(_ text: String) { try? Session.present.errors.writeAll(Array(text.utf8)) }

  /// Text for standard output as it is.
  static func text(_ text: String) { write(Array(text.utf8)) }

  private static func write(_ bytes: [UInt8]) {
    let session = Session.present
    do {
      try session.output.writeAll(bytes)
    } catch {
      session.outputFailure.withLock { $0 = error }
    }
  }
}
