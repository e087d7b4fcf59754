internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// The files that the kernel knows, and those of them of which it may have content.
///
/// The kernel counts how often it was told of a file, and gives that count back when it lets the file go. It may look the same
/// file up again before that is read here. So what it was told is counted here too, and a file is known until all of it has
/// come back: a lock takes the content of every file from the kernel that was opened and is known.
final class KernelNodes: Sendable {
  private struct State {
    /// How often the kernel was told of each file. It knows its root without that.
    var tellings: [InodeNumber: UInt64] = [:]
    var opened: Set<InodeNumber> = []
  }

  private let state = Mutex(State())

  /// Files that were opened since the kernel has known them, other than past its pages.
  var opened: Set<InodeNumber> { state.withLock { $0.opened } }

  /// All of them, but its root.
  var known: [InodeNumber] { state.withLock { Array($0.tellings.keys) } }

  /// Tells the kernel of each file that it knows, but its root, and of each that it is just being told of: where the answer is on
  /// its way it does not know the file yet, and is told once more a while later.
  ///
  /// - Parameters:
  ///   - tell: whether the kernel knew the file.
  ///   - pause: called before those that it did not know, and does not give back, are told of again.
  func tellAll(_ tell: (InodeNumber) -> Bool, pause: () -> Void) {
    var told: Set<InodeNumber> = []
    for round in 0...Self.retryLimit {
      for number in known where !told.contains(number) && tell(number) { told.insert(number) }
      if round == Self.retryLimit || told.isSuperset(of: known) { return }
      pause()
    }
  }

  private static let retryLimit = 3

  /// The kernel is about to be told of files, of each as often as it is named. Comes before the answer, for what it gives back
  /// may be here before whoever answered goes on.
  func willTell(_ numbers: some Sequence<InodeNumber>) {
    state.withLock { state in for number in numbers { state.tellings[number, default: 0] += 1 } }
  }

  func willTell(_ number: InodeNumber) { willTell(CollectionOfOne(number)) }

  /// The kernel has been told of the file, and has not given it back.
  func isKnown(_ number: InodeNumber) -> Bool { state.withLock { $0.tellings[number] != nil } }

  /// The kernel may have content of the file.
  func wasOpened(_ number: InodeNumber) -> Bool { state.withLock { $0.opened.contains(number) } }

  func didOpen(_ number: InodeNumber) { state.withLock { _ = $0.opened.insert(number) } }

  /// The kernel has given `count` tellings of a file back, or never got them; `true` where it knows the file no more. Then `last` has run,
  /// before the kernel can know the file again.
  func didGiveBack(_ number: InodeNumber, _ count: UInt64, last: () -> Void) -> Bool {
    state.withLock { state in
      let told = state.tellings[number] ?? 0
      state.tellings[number] = told > count ? told - count : nil
      if told > count { return false }
      // More than it was told means that a telling was not counted: then a lock goes on to drop the file's content.
      if told == count { state.opened.remove(number) }
      last()
      return true
    }
  }
}
