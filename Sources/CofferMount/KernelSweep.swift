internal import CofferFiles
internal import CofferSystem
internal import Foundation

/// Has the kernel forget what it has of all files, though programs may hold some of it up.
///
/// The kernel waits for the lock of a page, which it holds itself while it copies a folder's entries to a program; and a program that
/// never lets it have the memory for them (userfaultfd(2)) holds it as long as it likes. So the kernel is told on a thread of its own.
/// Where that gets no further, another goes on with the rest; and where some have got stuck, that is all.
final class KernelSweep: @unchecked Sendable {
  /// How long no file may take, in seconds, and how many may get stuck.
  private static let patience = 0.25
  private static let threadLimit = 4

  private let nodes: KernelNodes
  private let root: InodeNumber
  private let tell: @Sendable (InodeNumber) -> Bool
  private let condition = TimedCondition()
  // Under `condition`.
  private var taken: Set<InodeNumber> = []
  private var toldCount = 0
  private var runningCount = 0
  /// A thread has come to the end: what is left is in others' hands.
  private var hasWalked = false

  private init(_ nodes: KernelNodes, _ root: InodeNumber, _ tell: @escaping @Sendable (InodeNumber) -> Bool) {
    self.nodes = nodes
    self.root = root
    self.tell = tell
  }

  /// Returns when the kernel has forgotten what nobody holds up.
  ///
  /// - Parameters:
  ///   - root: which the kernel knows without having been told of it.
  ///   - patience: as above, for tests.
  ///   - tell: whether the kernel knew the file. Called on threads of its own, perhaps for longer than this takes.
  static func run(
    _ nodes: KernelNodes, root: InodeNumber, patience: Double = patience,
    _ tell: @escaping @Sendable (InodeNumber) -> Bool
  ) {
    let sweep = KernelSweep(nodes, root, tell)
    var threadCount = 0
    repeat {
      threadCount += 1
      sweep.start()
    } while !sweep.isDone(patience: patience) && threadCount < threadLimit
      && !sweep.condition.withLock { sweep.hasWalked }
  }

  private func start() {
    condition.withLock { runningCount += 1 }
    let work: @Sendable () -> Void = { [self] in
      sweep()
      condition.withLock {
        runningCount -= 1
        hasWalked = true
        condition.broadcast()
      }
    }
    // Where there is no thread, it must not be left out.
    do { try NewThread.start(work) } catch { work() }
  }

  /// Waits until all threads are done; `false` where none gets any further.
  private func isDone(patience: Double) -> Bool {
    condition.withLock {
      while runningCount > 0 {
        let before = toldCount
        let end = SuspendingClock.now + .seconds(patience)
        while runningCount > 0, condition.wait(until: end) {}
        if runningCount > 0, toldCount == before { return false }
      }
      return true
    }
  }

  private func sweep() {
    _ = tellOnce(root)
    nodes.tellAll {
      tellOnce($0)
    } pause: {
      Thread.sleep(forTimeInterval: ChangeQueue.retryTime)
    }
  }

  /// `true` also where another thread has done so, or is about to.
  private func tellOnce(_ number: InodeNumber) -> Bool {
    guard condition.withLock({ taken.insert(number).inserted }) else { return true }
    let isKnown = tell(number)
    condition.withLock {
      toldCount += 1
      if !isKnown { taken.remove(number) }
    }
    return isKnown
  }
}
