internal import CofferSystem
internal import Synchronization

/// SIGINT and SIGTERM during a transfer, or a client that hung up: asked about between chunks, so that what was begun is
/// taken back first.
final class Interrupts: Sendable {
  private let raised = Atomic(false)
  private let caught = Atomic(false)

  static let ofProcess = Interrupts()

  /// Those of the command that runs here.
  static var present: Interrupts { Session.present.interrupts }

  /// Whether the command that runs here was interrupted. Other threads ask what was `present` before.
  static var wasInterrupted: Bool { present.isRaised }

  var isRaised: Bool { raised.load(ordering: .relaxed) }

  /// The command takes back what it has begun; one that does not may be left alone in the midst of its work.
  var isCaught: Bool { caught.load(ordering: .relaxed) }

  func raise() { raised.store(true, ordering: .relaxed) }

  /// From here to the command's end the signals no longer end it.
  ///
  /// A handler rather than an event source: the mark is there before anything that the same Control-C brings about, such
  /// as the end of the input when the program that writes to it has gone.
  static func catchFromHere() {
    let interrupts = present
    interrupts.caught.store(true, ordering: .relaxed)
    // A client's signals come as messages.
    guard interrupts === ofProcess else { return }
    for number in [SignalRelay.interrupt, SignalRelay.termination] {
      SignalRelay.handle(number) { _ in Interrupts.ofProcess.raise() }
    }
  }
}
