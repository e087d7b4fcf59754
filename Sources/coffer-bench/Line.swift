internal import CofferSystem
internal import Foundation

/// One measurement, as it is printed.
struct Line: Encodable {
  let measurement: String
  /// Who did it: `coffer`, or the name of a peer.
  let subject: String
  var round = 0
  /// What was asked for: sizes, counts, threads.
  var parameters: [String: Int] = [:]
  var seconds: Double?
  /// What was done in that time: bytes moved, or calls made.
  var bytes: Int?
  var calls: Int?
  /// Peak memory above the baseline, in bytes.
  var memory: Int?

  func print() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    try OwnedDescriptor.standardOutput.writeAll(Array(encoder.encode(self)) + [10])
  }
}

/// Seconds that `body` takes.
func seconds(_ body: () throws -> Void) rethrows -> Double {
  let duration = try ContinuousClock().measure(body)
  return Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
}

extension Array {
  /// This and what follows, from another one on each time: nobody is always first.
  func rotated(by count: Int) -> [Element] {
    isEmpty ? [] : Array(self[(count % self.count)...] + self[..<(count % self.count)])
  }
}
