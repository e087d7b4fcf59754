public import CofferFiles
internal import CofferSystem
internal import Synchronization

/// What somebody changed, for those who remember what they were told: a mount, whose kernel keeps names, attributes and
/// content.
public enum TreeChange: Sendable, Hashable {
  /// The name stands for something else in the folder, or for nothing, and so the folder has changed.
  case name([UInt8], in: InodeNumber)
  /// A folder has come to lie elsewhere, or to be called something else.
  case place(of: InodeNumber, name: [UInt8], in: InodeNumber)
  case attributes(of: InodeNumber)
  case content(of: InodeNumber)
}

/// Who makes a change. Whoever observes changes is not told of those that are its own.
public final class ChangeOrigin: Sendable {
  @TaskLocal static var present: ChangeOrigin?

  public init() {}

  /// Runs `body`, whose changes are this origin's.
  public func perform<Result>(_ body: () throws -> Result) rethrows -> Result {
    try Self.$present.withValue(self, operation: body)
  }

  /// The calling thread makes changes for one that observes, too: it must not wait without end until
  /// others have heard of them.
  public static var isObserver: Bool { present != nil }
}

/// Who is told of changes.
final class ChangeObservers: Sendable {
  typealias Body = @Sendable ([TreeChange]) -> Void

  private struct Entry {
    let number: Int
    let origin: ChangeOrigin
    let body: Body
  }

  private let state = Mutex<(next: Int, all: [Entry])>((0, []))
  private let count = Atomic(0)

  /// Nobody has to gather changes where nobody listens.
  var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

  func add(_ origin: ChangeOrigin, _ body: @escaping Body) -> VaultObservation {
    let number = state.withLock { state in
      state.next += 1
      state.all.append(Entry(number: state.next, origin: origin, body: body))
      return state.next
    }
    count.add(1, ordering: .acquiringAndReleasing)
    return VaultObservation { [weak self] in
      guard let self else { return }
      state.withLock { state in state.all.removeAll { $0.number == number } }
      count.subtract(1, ordering: .acquiringAndReleasing)
    }
  }

  /// The caller holds no lock of the vault.
  func tell(_ changes: [TreeChange]) {
    if changes.isEmpty { return }
    let origin = ChangeOrigin.present
    for entry in state.withLock({ $0.all }) where entry.origin !== origin { entry.body(changes) }
  }
}

extension Vault {
  /// Calls `observer` with what others than `origin` change, on their threads, when it is done and before they go on,
  /// until the observation goes.
  public func observeChanges(
    except origin: ChangeOrigin, _ observer: @escaping @Sendable ([TreeChange]) -> Void
  ) -> VaultObservation {
    changeObservers.add(origin, observer)
  }
}
