internal import ArgumentParser
internal import CofferSystem
internal import Synchronization

/// SIGINT, SIGTERM and SIGHUP during a transfer, or a client that hung up: asked about between chunks, so that what was
/// begun is taken back first.
final class Interrupts: Sendable {
  private let raised = Atomic(false)
  private let number = Atomic<Int32>(0)
  private let caught = Atomic(false)

  static let ofProcess = Interrupts()

  /// Those of the command that runs here.
  static var present: Interrupts { Session.present.interrupts }

  /// Whether the command that runs here was interrupted. Other threads ask what was `present` before.
  static var wasInterrupted: Bool { present.isRaised }

  var isRaised: Bool { raised.load(ordering: .relaxed) }

  /// The command takes back what it has begun; one that does not may be left alone in the midst of its work.
  var isCaught: Bool { caught.load(ordering: .relaxed) }

  /// The signal, once the command was interrupted by one: it is to end by that.
  var signal: Int32? {
    let number = number.load(ordering: .relaxed)
    return number == 0 ? nil : number
  }

  /// - Parameter signal: nil where none came, but the command is to end all the same.
  func raise(_ signal: Int32? = nil) {
    if let signal { number.store(signal, ordering: .relaxed) }
    raised.store(true, ordering: .relaxed)
  }

  /// Runs `body`, which takes back what it has begun when it is interrupted, and throws then.
  func catching<Result>(_ body: () throws -> Result) rethrows -> Result {
    let before = caught.exchange(true, ordering: .relaxed)
    let result = try body()
    caught.store(before, ordering: .relaxed)
    return result
  }

  /// Ends a command by the signal that came, where it has done and said what it can. A result that could not be written comes first.
  static func endIfRaised() throws {
    guard present.isRaised else { return }
    try Output.finish()
    throw ExitCode(130)
  }

  /// The signals end the command again.
  static func catchNoMore() {
    let interrupts = present
    guard interrupts === ofProcess else { return }
    for number in SignalRelay.interrupts { SignalRelay.letGo(number) }
    interrupts.caught.store(false, ordering: .relaxed)
  }

  /// From here to the command's end, or to ``catchNoMore()``, the signals no longer end it.
  ///
  /// A handler rather than an event source: the mark is there before anything that the same Control-C brings about, such
  /// as the end of the input when the program that writes to it has gone.
  static func catchFromHere() {
    let interrupts = present
    interrupts.caught.store(true, ordering: .relaxed)
    // A client's signals come as messages.
    guard interrupts === ofProcess else { return }
    for number in SignalRelay.interrupts { SignalRelay.handle(number) { Interrupts.ofProcess.raise($0) } }
  }
}
