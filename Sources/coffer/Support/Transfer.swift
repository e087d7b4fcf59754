internal import CofferFiles
internal import Foundation
internal import Synchronization

/// A transfer of bytes as a person sees it: a bar, and an interrupt that ends it cleanly.
final class Transfer: Sendable {
  private let total: UInt64?
  private let line = ProgressLine()
  private let done = Atomic<UInt64>(0)

  /// - Parameter total: bytes, where they are known.
  init(total: UInt64?) { self.total = total }

  var control: TransferControl {
    TransferControl(
      progress: { self.add($0) }, isCancelled: { Interrupts.wasInterrupted })
  }

  private func add(_ count: Int) {
    let done = done.wrappingAdd(UInt64(count), ordering: .relaxed).newValue
    line.show {
      guard let total, total > 0 else { return Size.text(done) }
      return "\(ProgressLine.bar(Double(done) / Double(total))) of \(Size.text(total))"
    }
  }

  /// Takes the bar away.
  func end() { line.end() }
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
