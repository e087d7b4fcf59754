internal import CofferFiles
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// A transfer of bytes as a person sees it: a bar, and an interrupt that ends it cleanly.
final class Transfer: Sendable {
  private let total: UInt64?
  private let stream: OwnedDescriptor?
  private let session = Session.present
  private let line = ProgressLine()
  private let done = Atomic<UInt64>(0)

  /// - Parameters:
  ///   - total: bytes, where they are known.
  ///   - stream: what is read, where only its end tells that it is whole.
  init(total: UInt64?, stream: OwnedDescriptor? = nil) {
    self.total = total
    self.stream = stream
  }

  var control: TransferControl {
    TransferControl(progress: { self.add($0) }, isCancelled: { self.isCancelled })
  }

  /// An interrupt that ends the program which writes to the stream reaches the command as well, but through the agent it
  /// may come later than the stream's end. So that a part is not taken for the whole, the client is asked then.
  private var isCancelled: Bool {
    if session.interrupts.isRaised { return true }
    guard let stream, stream.isHungUp else { return false }
    return !session.confirmPresence()
  }

  private func add(_ count: Int) {
    let done = done.wrappingAdd(UInt64(count), ordering: .relaxed).newValue
    line.show {
      guard let total, total > 0 else { return Size.text(done) }
      return "\(ProgressLine.bar(Double(done) / Double(total))) of \(Size.text(total))"
    }
  }

  /// Bytes so far.
  var byteCount: UInt64 { done.load(ordering: .relaxed) }

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
