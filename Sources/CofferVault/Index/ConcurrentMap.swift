internal import Dispatch

/// The results of `body` for 0 to `count` - 1, computed on several threads where there are enough of them to gain by it.
func concurrentMap<Result: Sendable>(
  _ count: Int, _ body: @Sendable (Int) throws -> Result
) throws -> [Result] {
  let share = 32
  guard count >= 2 * share, Workers.count > 1 else { return try (0..<count).map(body) }
  var failures = [(any Error)?](repeating: nil, count: (count + share - 1) / share)
  let results = [Result?](unsafeUninitializedCapacity: count) { buffer, initialized in
    for index in 0..<count { buffer.initializeElement(at: index, to: nil) }
    initialized = count
    failures.withUnsafeMutableBufferPointer { failures in
      // Each iteration touches its own part of both buffers.
      nonisolated(unsafe) let (buffer, failures) = (buffer, failures)
      DispatchQueue.concurrentPerform(iterations: failures.count) { part in
        do {
          for index in (part * share)..<min((part + 1) * share, count) { buffer[index] = try body(index) }
        } catch {
          failures[part] = error
        }
      }
    }
  }
  for case let error? in failures { throw error }
  return results.compactMap { $0 }
}
