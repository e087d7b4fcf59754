internal import Foundation
internal import Synchronization

/// SIGINT and SIGTERM during a transfer: asked about between chunks, so that what was begun is taken back first.
enum Interrupts {
  private static let interrupted = Atomic(false)

  static var wasInterrupted: Bool { interrupted.load(ordering: .relaxed) }

  /// From here to the end of the process the signals no longer end it.
  ///
  /// A handler rather than an event source: the mark is there before anything that the same Control-C brings about, such
  /// as the end of the input when the program that writes to it has gone.
  static func catchFromHere() {
    // Made now, because a signal handler may not be the first to ask.
    interrupted.store(false, ordering: .relaxed)
    for number in [SIGINT, SIGTERM] { signal(number) { _ in Interrupts.interrupted.store(true, ordering: .relaxed) } }
  }
}
