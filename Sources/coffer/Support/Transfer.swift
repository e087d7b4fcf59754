internal import CofferFiles
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// A long operation as a person sees it: a bar after the first second where standard error is a terminal, and an
/// interrupt that ends it cleanly.
final class Transfer: Sendable {
  private let total: UInt64?
  private let isShown = isatty(STDERR_FILENO) == 1
  private let start = ContinuousClock.now
  private let state = Mutex(State())

  private struct State {
    var done: UInt64 = 0
    var lastShown: ContinuousClock.Instant?
  }

  /// - Parameter total: bytes, where they are known.
  init(total: UInt64?) { self.total = total }

  var control: TransferControl {
    TransferControl(
      progress: { self.add($0) }, isCancelled: { Interrupts.wasInterrupted })
  }

  private func add(_ count: Int) {
    guard isShown else { return }
    let now = ContinuousClock.now
    let line = state.withLock { state -> String? in
      state.done += UInt64(count)
      guard now - start > .seconds(1), state.lastShown.map({ now - $0 > .milliseconds(100) }) ?? true else {
        return nil
      }
      state.lastShown = now
      return bar(state.done)
    }
    if let line { FileHandle.standardError.write(Data("\r\(line)\u{1b}[K".utf8)) }
  }

  private func bar(_ done: UInt64) -> String {
    guard let total, total > 0 else { return Size.text(done) }
    let width = 30
    let filled = Int(Double(width) * min(1, Double(done) / Double(total)))
    let percent = Int(100 * min(1, Double(done) / Double(total)))
    return "[\(String(repeating: "#", count: filled))\(String(repeating: "-", count: width - filled))] "
      + "\(percent)% of \(Size.text(total))"
  }

  /// Takes the bar away.
  func end() {
    if state.withLock({ $0.lastShown != nil }) { FileHandle.standardError.write(Data("\r\u{1b}[K".utf8)) }
  }
}

/// Sizes for people.
enum Size {
  static func text(_ byteCount: UInt64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    var value = Double(byteCount)
    var unit = 0
    while value >= 1024, unit + 1 < units.count {
      value /= 1024
      unit += 1
    }
    return unit == 0 ? "\(byteCount) B" : String(format: "%.1f %@", value, units[unit] as NSString)
  }
}
