import CofferTestSupport
import Foundation
import Glibc
import Testing

/// Random operations on a ground and on a plain folder, whose results and whose trees are to be the same.
///
/// `COFFER_MOUNT_SEEDS` sets how many seeds are run, `COFFER_MOUNT_SEED` which one comes first.
@Suite struct RandomOperationTests {
  private static let seedCount = variable("COFFER_MOUNT_SEEDS") ?? 6
  private static let firstSeed = variable("COFFER_MOUNT_SEED") ?? 1
  private static let batchCount = 12
  private static let batchSize = 50

  private static func variable(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }

  /// In memory where there is such a place: another file system than a plain ground's.
  private static func model() throws -> ModelFolder {
    let memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
    return try ModelFolder(memory + "/coffer-test-" + UUID().uuidString)
  }

  @Test(arguments: Ground.Kind.here) func `a ground does what a plain folder does`(kind: Ground.Kind) throws {
    let ground = try Ground.shared(kind)
    for seed in Self.firstSeed..<(Self.firstSeed + Self.seedCount) {
      let operations = RandomOperation.series(seed: UInt64(seed), count: Self.batchCount * Self.batchSize)
      guard let failure = try difference(operations, on: ground, every: Self.batchSize) else { continue }
      let shortest = try shorten(operations, after: failure, on: ground)
      let report = shortest.operations.enumerated().map { "\($0.offset): \($0.element)" }.joined(separator: "\n")
      Issue.record(
        """
        seed \(seed), after \(failure.place + 1) operations: \(failure)
        These show it, with trees compared at the end: \(shortest.failure)
        \(report)
        """)
      return
    }
  }

  /// That the comparison finds what differs, and shows it by what it needs: the ground's operations are not the model's.
  @Test func `a difference is found and shown by few operations`() throws {
    let ground = try Ground.shared(.plain)
    var operations = RandomOperation.series(seed: 7, count: 60)
    operations.insert(.makeFolder("marked", mode: 0o755), at: 40)
    func isChanged(_ operation: RandomOperation) -> RandomOperation {
      operation == .makeFolder("marked", mode: 0o755) ? .makeFolder("marked", mode: 0o700) : operation
    }
    let failure = try #require(try difference(operations, on: ground, every: 50, changing: isChanged))
    #expect(failure.place == 49)
    let shortest = try shorten(operations, after: failure, on: ground, changing: isChanged)
    #expect(shortest.operations == [.makeFolder("marked", mode: 0o755)])
  }

  private struct Failure: CustomStringConvertible {
    /// Of the last operation that was made.
    let place: Int
    let description: String
  }

  /// The first difference between ground and model, in results after each operation and in trees after so many.
  private func difference(
    _ operations: [RandomOperation], on ground: Ground, every interval: Int,
    changing change: (RandomOperation) -> RandomOperation = { $0 }
  ) throws -> Failure? {
    let model = try Self.model()
    let plot = try ground.plot()
    let (ours, theirs) = (RandomPerformer(plot.path), RandomPerformer(model.path))
    for (place, operation) in operations.enumerated() {
      let (result, expected) = (ours.perform(change(operation)), theirs.perform(operation))
      if result != expected {
        return Failure(place: place, description: "\(operation): ‘\(result)’, and in a plain folder ‘\(expected)’")
      }
      guard (place + 1).isMultiple(of: interval) || place == operations.count - 1 else { continue }
      let trees = (try Tree(plot.path, acrossGrounds: true), try Tree(model.path, acrossGrounds: true))
      let differences = trees.0.differences(from: trees.1)
      if !differences.isEmpty {
        return Failure(
          place: place, description: "the ground | a plain folder:\n" + differences.joined(separator: "\n"))
      }
    }
    return nil
  }

  /// The shortest beginning that differs, less every operation that it does not need. Trees are compared at its end
  /// alone: looking at them changes what a system keeps in memory.
  private func shorten(
    _ operations: [RandomOperation], after failure: Failure, on ground: Ground,
    changing change: (RandomOperation) -> RandomOperation = { $0 }
  ) throws -> (operations: [RandomOperation], failure: Failure) {
    var (kept, failure) = (Array(operations[...failure.place]), failure)
    // Large parts first, the last ones before, then smaller ones, down to one operation.
    var size = kept.count / 2
    while size > 0 {
      var start = kept.count
      while start > 0 {
        let range = max(0, start - size)..<start
        var fewer = kept
        fewer.removeSubrange(range)
        if !fewer.isEmpty, let next = try difference(fewer, on: ground, every: fewer.count, changing: change) {
          (kept, failure) = (Array(fewer[...next.place]), next)
        }
        start = min(range.lowerBound, kept.count)
      }
      size /= 2
    }
    return (kept, failure)
  }
}

/// The plain folder of a random run, removed with its last reference.
private final class ModelFolder {
  let path: String

  init(_ path: String) throws {
    self.path = path
    try Kernel.mkdir(path)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
