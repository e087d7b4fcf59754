internal import CofferContainer
internal import CofferSystem
internal import Glibc
internal import Synchronization

/// How a mount ends: because it is asked to, because somebody takes it away, or by force while programs use it.
extension MountServer {
  /// The kernel asks nothing any more.
  func finish() {
    // A mount that was torn from its server stays in the tree, with what the kernel has, for who uses it.
    dropAll()
    observations.withLock { $0 = [] }
    foldersAhead.end()
    closing.end()
    view.end()
    // Those that the kernel did not give back, because its connection was torn.
    openFiles.forgetAll()
    view.letGoOfAll()
    // What the kernel gave back last.
    commitAll()
    // It has not let go where this could not listen to it any more.
    if !hasKernelLetGo.load(ordering: .acquiring) { try? takeDown(at: presentPlace, isLazy: true) }
    session.destroy()
    phase.set(.ended)
    didEnd(self)
  }

  /// Nothing passes any more, and what programs wrote is stored, as far as it can be.
  public var hasEnded: Bool { phase.present.isOver }

  /// The kernel asks nothing any more, and may have given its device to another.
  public var isLetGo: Bool { hasKernelLetGo.load(ordering: .acquiring) }

  /// It has ended, and the kernel has let go of it.
  public var isGone: Bool { phase.present == .ended }

  /// Waits until the mount has ended, though the kernel may keep what is left of it for programs.
  public func waitForEnd() { phase.wait { $0.isOver } }

  /// How long the kernel may take to let go of a mount that has been taken out of the tree, in seconds. It keeps one that a
  /// program has in a name space of its own.
  private static let endTime = 5.0

  /// Waits until the mount has ended, or somebody wants something else; `false` for that. Looks twice a second.
  public func waitForEnd(orUntil isWanted: () -> Bool) -> Bool { phase.waitUntilOver(orUntil: isWanted) }

  /// Ends the mount. Throws ``MountError/notStored(isFull:arePagesLost:)`` or ``MountError/pagesLost`` where it has ended and something is not
  /// stored, and ``MountError/busy`` where programs use it, unless `isForced`: then nothing passes any more as soon as what they wrote has
  /// been brought into the vault, before the system is asked for anything.
  ///
  /// - Parameter didWait: called once where it takes longer than a second.
  public func end(isForced: Bool, didWait: () -> Void = {}) throws(MountError) {
    let wasOver = hasEnded
    if isForced, !wasOver {
      stopPassing()
      if !hasDroppedAll.load(ordering: .acquiring) { dropAll() }
    }
    // Where it is ended: afterwards it may be seen elsewhere alone.
    let main = presentPlace
    let before = placesLeft
    func placesElsewhere() -> [String] { placesLeft.filter { !$0.isSamePath(as: main) } }
    let bound = placesElsewhere()
    do {
      try takeDown(at: main, isLazy: false)
    } catch {
      guard isForced else { throw error }
      let outcome = Result { () throws(MountError) in
        guard error.isBusy else { throw error }
        let users = if case .busy(let users) = error { users } else { MountUsers(at: main) }
        cutOffUsers.withLock { $0 = (main, users) }
        let below = Mounts.places(below: main)
        try takeDown(at: main, isLazy: true)
        detachedBelow.withLock { $0 = below }
      }
      // Also where somebody has taken it out of the tree before, or has hidden it: programs may still stand in it.
      if !hasEnded { cutOff() }
      // The number may be another's by now.
      let left = placesLeft.filter(before.contains)
      if !left.isEmpty { elsewhere.withLock { $0 = .places(left) } }
      try requireStored()
      // Whoever stood in it has been cut off.
      switch outcome {
      case .failure(.notMounted) where !wasOver, .failure(.foreign) where !wasOver: return
      default: return try outcome.get()
      }
    }
    // The number may be another's by now where there was no other place.
    let kept = placesElsewhere().filter(bound.contains)
    let start = SuspendingClock.now
    var isTold = false
    func tell() {
      if !isTold { didWait() }
      isTold = true
    }
    /// Nothing is called in it: others wait for the same.
    func letsGo(within seconds: Double) -> Bool {
      let end = start + .seconds(seconds)
      return waitForEnd(orUntil: { .now >= end || hasKernelLetGo.load(ordering: .acquiring) })
        || hasKernelLetGo.load(ordering: .acquiring)
    }
    var isLetGo = letsGo(within: kept.isEmpty ? 1 : 0)
    if !isLetGo, kept.isEmpty {
      tell()
      isLetGo = letsGo(within: Self.endTime)
    }
    if !isLetGo {
      elsewhere.withLock { $0 = .places(kept) }
      cutOff()
    } else if !waitForEnd(orUntil: { .now >= start + .seconds(1) }) {
      // What programs wrote is being stored, however slow the disk is.
      tell()
      waitForEnd()
    }
    try requireStored()
  }

  /// The number that the system has given it, `MAJOR:MINOR`, which no other mount has in any name space as long as it is there; nil
  /// before it is mounted.
  public var deviceNumber: String? { device.withLock { $0 } }

  /// Canonical paths of the places where it is seen, or hidden.
  private var placesLeft: [String] { device.withLock { $0 }.map { Mounts.places(of: $0) } ?? [] }

  /// The canonical path where it is seen: that of its mount point, which may have been moved with a folder above it. Where it is seen
  /// nowhere, or lies hidden where it was made, the one at which it was made.
  public var presentPlace: String {
    // Its number may be another's once the kernel has let go of it.
    guard !hasKernelLetGo.load(ordering: .acquiring), let device = device.withLock({ $0 }), !lies(at: place)
    else { return place }
    return Mounts.wholePlaces(of: device).first ?? place
  }

  private func lies(at place: String) -> Bool { placesLeft.contains { $0.isSamePath(as: place) } }

  /// Something hides it at its present place.
  public var isHidden: Bool { !isInTree && !hasKernelLetGo.load(ordering: .acquiring) && lies(at: presentPlace) }

  /// Whether it is what is seen at its present place: not where somebody has taken it out of the tree, or made another mount there.
  public var isInTree: Bool {
    guard let device = device.withLock({ $0 }), case let place = presentPlace, device == Mounts.device(at: place)
    else { return false }
    // The system may give its device to another once the kernel has let go of it; one whose connection was torn stays.
    return !hasKernelLetGo.load(ordering: .acquiring) || Mounts.isDead(at: place)
  }

  /// Takes it out of the tree, also where it was bound to its own place, and nothing else that somebody may have mounted there.
  private func takeDown(at place: String, isLazy: Bool) throws(MountError) {
    guard isInTree, let device = device.withLock({ $0 }) else { throw Mounts.absence(at: place) }
    for _ in 0..<Self.lookupTries {
      let areLookupsUnderWay = lookups.areUnderWay
      do { return try Mounts.unmountAll(of: device, from: place, isLazy: isLazy) } catch {
        // A moved folder is being looked up through the mount.
        guard error.isBusy, areLookupsUnderWay || lookups.areUnderWay else { throw error }
        usleep(Self.lookupPause)
      }
    }
    try Mounts.unmountAll(of: device, from: place, isLazy: isLazy)
  }

  /// How often such a lookup is waited for, and how long, in microseconds.
  private static let (lookupTries, lookupPause) = (100, UInt32(10_000))

  /// The programs that an end has cut off, which was forced.
  public var usersCutOff: MountUsers { cutOffUsers.withLock { $0.users } }
  /// The canonical path where they used it.
  public var placeCutOff: String { cutOffUsers.withLock { $0.place } }

  /// Where other file systems were mounted below it when it was taken out of the tree with them, canonical paths; since this was
  /// asked last.
  public func takeDetachedBelow() -> [String] {
    detachedBelow.withLock { places in
      defer { places = [] }
      return places
    }
  }

  /// Where it was still seen when it was ended at its place.
  public enum Elsewhere: Sendable, Equatable {
    case nowhere
    /// Canonical paths that it is bound to; none where it is in another name space of mounts, or programs use a place that was taken out
    /// of the tree.
    case places([String])
  }

  /// It was ended at its place, while the kernel kept it for others, who can use it no more; since this was asked last.
  public func takeKeptElsewhere() -> Elsewhere {
    elsewhere.withLock { elsewhere in
      defer { elsewhere = .nowhere }
      return elsewhere
    }
  }

  /// What of that which programs wrote was not stored when it ended, or is lost, whoever has been told; nil where nothing is. What was not
  /// stored the vault may have stored since.
  public var shortfall: MountError? { shortfall(arePagesLost: loss.hasBeen) }

  private func shortfall(arePagesLost: Bool) -> MountError? {
    if let failure = failure.withLock({ $0 }) {
      return .notStored(isFull: failure == .full, arePagesLost: arePagesLost)
    }
    return arePagesLost ? .pagesLost : nil
  }

  private func requireStored() throws(MountError) {
    if let shortfall = shortfall(arePagesLost: loss.take()) { throw shortfall }
  }

  /// A failure is told to whoever ends the mount, unless a later try has stored everything.
  private func commitAll() {
    let outcome = Result { () throws(ViewError) in try view.commitAll() }
    failure.withLock { if case .failure(let error) = outcome { $0 = error } else { $0 = nil } }
  }

  /// Brings what programs wrote into the vault, and lets nothing pass any more. What the kernel has of names and attributes it may show
  /// still, until ``dropAll()``.
  public func stopPassing() {
    if view.hasEnded { return }
    dropContent()
    view.end()
    // Also what was read anew in between.
    dropContent()
  }

  /// The process is about to end, and the mount has: what programs ask of what is left of it fails from then on.
  public func abandon() { session.abandon() }

  /// The same as ``stopPassing()``, and has all stored, for the kernel has not let go of it.
  private func cutOff() {
    stopPassing()
    if !hasDroppedAll.load(ordering: .acquiring) { dropAll() }
    // Programs may keep them open, and a key each.
    openFiles.closeAll()
    closing.finish()
    view.letGoOfAll()
    commitAll()
    phase.set(.cutOff)
  }
}
