internal import CofferSystem
internal import Foundation
internal import Synchronization

/// Threads that help whoever has a loop to go through, and stay until there is another.
///
/// Nobody waits for one: whoever comes late finds less to do, and where the system has none to give, the caller does all of it. (A
/// queue of Dispatch's keeps its caller waiting until there is one; a lock would wait for that caller.)
final class Helpers: @unchecked Sendable {
  /// The process's: with whoever calls, one for each processor.
  static let process = Helpers(limit: max(1, ProcessInfo.processInfo.activeProcessorCount - 1))

  /// A loop, while somebody goes through it. Whoever comes after its end finds no number left, and does not touch `body`.
  private final class Job: @unchecked Sendable {
    private let count: Int
    /// On the stack of the caller, who waits until every number is done.
    private let body: UnsafePointer<(Int) -> Void>
    private let next = Atomic(0)
    private let left: Atomic<Int>
    private let condition = NSCondition()

    init(_ count: Int, _ body: UnsafePointer<(Int) -> Void>) {
      self.count = count
      self.body = body
      left = Atomic(count)
    }

    func work() {
      while true {
        let number = next.add(1, ordering: .relaxed).oldValue
        guard number < count else { return }
        body.pointee(number)
        if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
          condition.withLock { condition.broadcast() }
        }
      }
    }

    func wait() { condition.withLock { while left.load(ordering: .acquiring) > 0 { condition.wait() } } }
  }

  private let limit: Int
  private let startThread: (@escaping @Sendable () -> Void) throws -> Void
  private let condition = NSCondition()
  // Under `condition`.
  /// Each as often as helpers are wanted for it.
  private var jobs: [Job] = []
  private var threadCount = 0
  /// Of them, those that go through a loop.
  private var busyCount = 0

  /// - Parameters:
  ///   - limit: threads at most.
  ///   - startThread: runs what it is given on a thread of its own, or throws. Tests have one that throws.
  init(
    limit: Int, startThread: @escaping (@escaping @Sendable () -> Void) throws -> Void = { try NewThread.start($0) }
  ) {
    (self.limit, self.startThread) = (limit, startThread)
  }

  /// Calls `body` once with each number below `count`, here and on threads that have nothing else to do. It must not throw, nor wait
  /// for another call of it.
  func each(_ count: Int, _ body: (Int) -> Void) {
    func offer(_ job: Job) { self.offer(job, min(count - 1, limit)) }
    func takeBack(_ job: Job) { condition.withLock { jobs.removeAll { $0 === job } } }
    Self.go(through: count, body, offering: offer, takingBack: takeBack)
  }

  /// The same, with threads that are made for it and end with it: for a body that may have to wait for somebody else.
  static func apart(_ count: Int, _ body: (Int) -> Void) {
    func offer(_ job: Job) { for _ in 1..<count { _ = try? NewThread.start { job.work() } } }
    go(through: count, body, offering: offer, takingBack: { _ in })
  }

  private static func go(
    through count: Int, _ body: (Int) -> Void, offering offer: (Job) -> Void,
    takingBack takeBack: (Job) -> Void
  ) {
    guard count > 1 else {
      if count == 1 { body(0) }
      return
    }
    withoutActuallyEscaping(body) { body in
      withUnsafePointer(to: body) { body in
        let job = Job(count, body)
        offer(job)
        job.work()
        takeBack(job)
        job.wait()
      }
    }
  }

  private func offer(_ job: Job, _ wanted: Int) {
    condition.withLock {
      for _ in 0..<wanted { jobs.append(job) }
      while threadCount < limit, threadCount - busyCount < jobs.count {
        guard (try? startThread { [self] in help() }) != nil else { break }
        threadCount += 1
      }
      for _ in 0..<wanted { condition.signal() }
    }
  }

  private func help() {
    while true {
      let job = condition.withLock {
        while jobs.isEmpty { condition.wait() }
        busyCount += 1
        return jobs.removeFirst()
      }
      job.work()
      condition.withLock { busyCount -= 1 }
    }
  }
}
