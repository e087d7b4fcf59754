import Foundation
import Testing

/// Random operations on a vault and on a model of it, compared after every one; reopened now and then.
///
/// `COFFER_SEEDS` sets how many seeds are run.
@Suite struct ModelTests {
  /// Seeds run one after another on a vault, each in a folder of its own: making a vault is the dear part.
  static let batches = 4
  private static let seedCount = ProcessInfo.processInfo.environment["COFFER_SEEDS"].flatMap(Int.init) ?? 1000

  /// How much is left of the names' hash: in the first batches all of it, in the others two bits and one.
  private static func nameMask(_ batch: Int) -> UInt64? {
    switch batch {
    case ..<2: nil
    case 2: 0x3000_0000_0000_0000
    default: 0x2000_0000_0000_0000
    }
  }

  @Test(arguments: 0..<batches) func `the vault does what the model does`(batch: Int) throws {
    let run = try ModelRun(nameMask: Self.nameMask(batch))
    for seed in stride(from: batch, to: Self.seedCount, by: Self.batches) {
      do {
        try run.run(seed: seed, steps: 30)
      } catch {
        Issue.record("seed \(seed) (in batch \(batch)): \(error)")
        break
      }
    }
    run.snapshots = []
    try run.close()
  }
}
