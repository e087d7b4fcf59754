internal import Dispatch
internal import Foundation
internal import Synchronization

/// SIGINT and SIGTERM during a transfer: asked about between chunks, so that what was begun is taken back first.
enum Interrupts {
  private static let interrupted = Atomic(false)

  static var wasInterrupted: Bool { interrupted.load(ordering: .relaxed) }

  /// From here to the end of the process the signals no longer end it.
  static func catchFromHere() {
    for number in [SIGINT, SIGTERM] {
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      // The handler holds its source, which nothing cancels: it lives as long as the process.
      source.setEventHandler {
        interrupted.store(true, ordering: .relaxed)
        withExtendedLifetime(source) {}
      }
      source.resume()
    }
  }
}
