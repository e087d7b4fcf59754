internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// What has no name: who uses or holds it, and its removal when nobody does.
extension FileRegistry {
  /// The inode is gone with its last name. Called when the operation is applied.
  func didRemove(_ inode: InodeNumber) {
    let forgotten = state.withLock { state -> FileNode? in
      guard let node = state.entries[inode]?.node else { return nil }
      state.removeGone(node)
      return node
    }
    if let forgotten { forgetMemory(of: forgotten) }
  }

  /// It has no name from now on, and was needed: whoever used or held it may be gone too by now. Called when the operation is applied.
  ///
  /// - Parameter isNameless: it was made so, and may get a name.
  func didOrphan(_ inode: InodeNumber, isNameless: Bool = false) {
    let gone = state.withLock { state -> FileNode? in
      let entry = state.entries[inode]
      entry?.isUnlinked = true
      entry?.isNameless = isNameless
      return (entry?.users ?? 0) > 0 ? nil : state.leave(inode)
    }
    if let gone { forgetMemory(of: gone) }
  }

  /// One more use of a file that was made without a name, so that it stays while it gets one; nil for any other.
  func retainNameless(_ inode: InodeNumber) -> FileNode? {
    state.withLock { state in
      guard let entry = state.entries[inode], entry.isNameless else { return nil }
      entry.users += 1
      return entry.node
    }
  }

  /// It was made without a name, is held, and nobody uses it.
  func isHeldNameless(_ inode: InodeNumber) -> Bool { state.withLock { $0.held[inode]?.isNameless ?? false } }

  /// A file that was made without a name has got one.
  func didName(_ inode: InodeNumber) {
    state.withLock { state in
      state.held[inode] = nil
      state.removals.numbers.removeAll { $0 == inode }
      state.postponed.removeAll { $0 == inode }
      state.entries[inode]?.isUnlinked = false
      state.entries[inode]?.isNameless = false
    }
  }

  /// The next removals; one thread at a time takes them.
  func beginRemovals() -> Removals? {
    state.withLock { state in
      guard !state.isRemoving, !state.removals.isEmpty else { return nil }
      state.isRemoving = true
      var taken = Removals(unjoined: state.removals.unjoined)
      state.removals.unjoined = []
      taken.numbers = Array(state.removals.numbers.suffix(Self.removalsAtOnce))
      state.removals.numbers.removeLast(taken.numbers.count)
      return taken
    }
  }

  private static let removalsAtOnce = 64

  /// - Parameters:
  ///   - removals: those that were to be made.
  ///   - postponed: those of them for which there was no room. Then all others are postponed, too.
  func end(_ removals: Removals, postponed: [InodeNumber]) {
    if postponed.count < removals.numbers.count || !removals.unjoined.isEmpty {
      removalCount.add(1, ordering: .acquiringAndReleasing)
    }
    state.withLock { state in
      state.isRemoving = false
      if postponed.isEmpty { return }
      state.postponed += state.removals.numbers + postponed
      state.removals.numbers = []
    }
    tellWaiters()
  }

  private func tellWaiters() {
    if isAwaited { settling.withLock { settling.broadcast() } }
  }

  /// Somebody lacks room: see ``waitUntilSettled(until:_:)``.
  var isAwaited: Bool { state.withLock { $0.waiterCount > 0 } }

  // MARK: Holding

  func addHolder(
    _ holds: @escaping @Sendable (InodeNumber) -> Bool, _ hearing: @escaping @Sendable () -> () -> Bool
  ) -> Int {
    state.withLock { state in
      state.lastHolder += 1
      state.holders.append(Holder(number: state.lastHolder, holds: holds, hearing: hearing))
      return state.lastHolder
    }
  }

  func removeHolder(_ number: Int) {
    state.withLock { state in
      state.holders.removeAll { $0.number == number }
      state.letGo = Array(state.held.keys)
    }
  }

  /// When what a holder let go of is to go: see ``leaveLetGo()``.
  enum LettingGo { case nothing, soon, now }

  /// A holder holds this no more.
  func letGo(of number: InodeNumber) -> LettingGo {
    state.withLock { state in
      // Whoever uses it last asks all holders.
      if state.held[number] == nil { return .nothing }
      state.letGo.append(number)
      return state.letGo.count >= Self.removalsAtOnce || state.waiterCount > 0 ? .now : .soon
    }
  }

  /// Whether something has no name that may be about to be let go of, or removed: it would give room back.
  var isSettling: Bool { state.withLock { $0.isSettling } }

  /// Waits until nothing is there without a name that nobody needs: until every holder has heard of all that was let go of before, and that
  /// is removed.
  ///
  /// - Parameters:
  ///   - end: where holders do not get as far, for something holds them up.
  ///   - removeLetGo: removes what was let go of before anybody waited for it.
  func waitUntilSettled(until end: SuspendingClock.Instant, _ removeLetGo: () -> Void) {
    let (awaited, holders) = state.withLock { state in
      state.waiterCount += 1
      return (state.nameless, state.holders)
    }
    defer { state.withLock { $0.waiterCount -= 1 } }
    var unheard = holders.map { $0.hearing() }
    removeLetGo()
    while SuspendingClock.now < end {
      unheard.removeAll { $0() }
      let hasHeard = unheard.isEmpty
      // Nothing tells when a holder has heard.
      let isSettled = settling.withLock {
        let isSettled = state.withLock { $0.isSettled(of: awaited, hasHeard: hasHeard) }
        if !isSettled { _ = settling.wait(until: min(end, .now + Self.hearingTime)) }
        return isSettled
      }
      if isSettled { return }
    }
  }

  private static let hearingTime = Duration.microseconds(500)

  /// Has everything go that was let go of, unless somebody uses or holds it, and that was postponed.
  func leaveLetGo() {
    let gone = state.withLock { state in
      defer { (state.letGo, state.postponed) = ([], []) }
      state.removals.numbers += state.postponed
      return state.letGo.compactMap { number -> FileNode? in
        guard state.held[number] != nil else { return nil }
        if (state.entries[number]?.users ?? 0) == 0 { return state.leave(number) }
        state.held[number] = nil
        return nil
      }
    }
    for node in gone { forgetMemory(of: node) }
    tellWaiters()
  }
}
