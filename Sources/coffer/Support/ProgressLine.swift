internal import CofferSystem
internal import Synchronization

/// One line of the terminal that says how far a long operation is: from its second second on, ten times a second, and
/// only where standard error is a terminal.
final class ProgressLine: Sendable {
  private let output = Session.present.errors
  private let isShown: Bool
  private let start = ContinuousClock.now
  private let lastShown = Mutex<ContinuousClock.Instant?>(nil)

  init() { isShown = output.isTerminal }

  func show(_ text: () -> String) {
    guard isShown else { return }
    let now = ContinuousClock.now
    guard now - start > .seconds(1) else { return }
    let isDue = lastShown.withLock { last in
      if let shown = last, now - shown <= .milliseconds(100) { return false }
      last = now
      return true
    }
    if isDue { try? output.writeAll(Array("\r\(text())\u{1b}[K".utf8)) }
  }

  /// Takes the line away.
  func end() {
    if lastShown.withLock({ $0 != nil }) { try? output.writeAll(Array("\r\u{1b}[K".utf8)) }
  }

  /// `part` of the whole, as a bar and in per cent.
  static func bar(_ part: Double) -> String {
    let width = 30
    let part = min(1, max(0, part))
    let filled = Int(Double(width) * part)
    return "[\(String(repeating: "#", count: filled))\(String(repeating: "-", count: width - filled))] "
      + "\(Int(100 * part))%"
  }
}
