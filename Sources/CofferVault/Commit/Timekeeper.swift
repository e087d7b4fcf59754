internal import CofferSystem
internal import Foundation
internal import Synchronization

/// Calls what is due, on a thread of its own that is there before it is needed: when a lock's time is over, the system may have no
/// thread to give, and a queue would wait until it has.
final class Timekeeper: Sendable {
  private let pending = Mutex<[(due: SuspendingClock.Instant, body: @Sendable () -> Void)]>([])
  /// Readable when something was added.
  private let bell: (reading: OwnedDescriptor, writing: OwnedDescriptor)

  private static let process = Mutex<Timekeeper?>(nil)

  /// The process's, which is made where there is none yet; nil where the system has no thread for it.
  static var present: Timekeeper? { try? started() }

  /// The same; throws where the system has no thread for it.
  static func started() throws(SystemError) -> Timekeeper {
    try process.withLock { (present: inout Timekeeper?) throws(SystemError) -> Timekeeper in
      if let present { return present }
      let made = try Timekeeper()
      present = made
      return made
    }
  }

  private init() throws(SystemError) {
    bell = try OwnedDescriptor.pipe()
    // The process's end ends it.
    try NewThread.start { [self] in
      while true {
        for body in takeDue() { body() }
        wait()
      }
    }
  }

  /// Calls `body` once, by a clock that nobody sets and that stands still while the machine sleeps. What is due later waits for it.
  func call(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void) {
    let due = SuspendingClock.now + .seconds(seconds)
    pending.withLock { $0.append((due, body)) }
    // A full pipe is readable, too.
    try? bell.writing.writeAll([0])
  }

  private func takeDue() -> [@Sendable () -> Void] {
    let now = SuspendingClock.now
    return pending.withLock { pending in
      let due = pending.filter { $0.due <= now }.sorted { $0.due < $1.due }
      pending.removeAll { $0.due <= now }
      return due.map(\.body)
    }
  }

  /// Returns when something is due, or was added.
  private func wait() {
    let first = pending.withLock { $0.map(\.due).min() }
    // Rounded up, so that the last part of a millisecond is not spent turning.
    let left = first.map { max(0, Int64(($0 - SuspendingClock.now) / .milliseconds(1)) + 1) }
    let isRung: Bool
    do {
      isRung = try Readiness.wait(for: [bell.reading], milliseconds: left.map { Int32(clamping: $0) } ?? -1)[0]
    } catch {
      // Of nothing that is known of; then not without a pause.
      Thread.sleep(forTimeInterval: 0.01)
      return
    }
    guard isRung else { return }
    var bytes = [UInt8](repeating: 0, count: 64)
    _ = try? bytes.withUnsafeMutableBytes { try bell.reading.read(into: $0) }
  }
}
