internal import CofferSystem
internal import Foundation
internal import Glibc
internal import Synchronization

/// The spinner of a process, which is there while somebody uses it.
extension IdleSpinner {
  private struct Shared {
    var spinner: IdleSpinner?
    var userCount = 0
  }

  private static let shared = Mutex(Shared())

  /// The process's, for who calls ``giveBack()`` when they need it no more. Nil where it is of no use to a mount on this machine, or
  /// cannot be had.
  ///
  /// - Parameter now: nanoseconds of a clock that nobody sets, the same for all.
  static func taken(now: @escaping @Sendable () -> UInt64) -> IdleSpinner? {
    guard isOfUse else { return nil }
    return shared.withLock { shared in
      if shared.spinner == nil {
        guard let runnable = RunnableThreads() else { return nil }
        let processorCount = ProcessInfo.processInfo.activeProcessorCount
        let spinner = IdleSpinner(now: now) {
          runnable.count.map { $0 > processorCount } ?? true
        }
        do { try spinner.start() } catch { return nil }
        shared.spinner = spinner
      }
      shared.userCount += 1
      return shared.spinner
    }
  }

  /// Once for each time that it was taken.
  static func giveBack() {
    shared.withLock { shared in
      shared.userCount -= 1
      guard shared.userCount == 0 else { return }
      shared.spinner?.stop()
      shared.spinner = nil
    }
  }

  private static var isOfUse: Bool {
    isOfUse(
      IdleDriver.present, mayAskKernel: AwakeProcessors.mayBeKept,
      processorCount: MachineProcessors.count,
      ownProcessorCount: ProcessInfo.processInfo.activeProcessorCount)
  }

  /// - Parameters:
  ///   - processorCount: those of the machine.
  ///   - ownProcessorCount: those that this process may use.
  static func isOfUse(
    _ driver: IdleDriver, mayAskKernel: Bool, processorCount: Int, ownProcessorCount: Int
  ) -> Bool {
    guard processorCount == 2, ownProcessorCount == 2 else { return false }
    return driver == .haltsAtOnce && !mayAskKernel
  }
}
