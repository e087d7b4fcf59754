internal import CofferSystem
internal import Synchronization

/// The threads that look up where a mount's folders lie by now that others have moved.
///
/// One at a time, unless one has got stuck. None waits for long where one has just waited in vain: a program that goes on to change what lies
/// beside a hundred folders that are moved would hold up all that the kernel is to be told.
final class FolderLookups: Sendable {
  enum Outcome {
    case found
    /// Something else is there for the kernel, or a folder is locked: a while later it may be found.
    case missing
    case impossible
  }

  /// Of a folder that is locked.
  private static let tries = 50

  private let state = Mutex((runningCount: 0, wasInVain: false))

  var areUnderWay: Bool { state.withLock { $0.runningCount > 0 } }

  /// - Parameter body: is told how often it is to try.
  func run(_ body: (Int) -> Outcome) -> Outcome {
    let tries = state.withLock { state in
      state.runningCount += 1
      return state.wasInVain ? 1 : Self.tries
    }
    let outcome = body(tries)
    state.withLock { state in
      state.runningCount -= 1
      state.wasInVain = outcome == .missing
    }
    return outcome
  }
}
