internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// What the kernel keeps, and what it is told when somebody else changes that.
extension MountServer {
  /// The kernel is about to be told of files. Throws where the mount has been taken away: nobody would take from it again what it
  /// is told now. An answer that is on its way then is known to who takes the mount away, see ``KernelNodes/tellAll(_:pause:)``.
  func willTell(_ numbers: some Collection<InodeNumber>) throws(ViewError) {
    nodes.willTell(numbers)
    guard view.hasEnded else { return }
    for number in numbers { didGiveBack(number) }
    throw .ended
  }

  /// The kernel has given `count` tellings of a file back, or never got them.
  func didGiveBack(_ number: InodeNumber, _ count: UInt64 = 1) {
    let isForgotten = nodes.didGiveBack(number, count) {
      changedFolders.withLock { _ = $0.remove(number) }
      movedFolders.withLock { $0[number] = nil }
    }
    if isForgotten { view.letGo(of: number) }
  }

  /// Whether the entries that the kernel has of a folder may be used again. Asked when it is opened: what another has
  /// changed until then is then read anew, also by a reading that began before the change.
  func mayKeepEntries(of folder: InodeNumber) -> Bool { changedFolders.withLock { $0.remove(folder) } == nil }

  /// Lets the kernel write back what it has of files, and forget it, also where a program has it mapped.
  func dropContent() {
    bringPagesBack()
    didDrop()
  }

  /// The same, and what it has of attributes and of a folder's entries: it asks for a folder's attributes before it lets anybody
  /// pass it, so that of what is below no name is found either. What a program keeps the kernel from dropping is left after a while.
  public func dropAll() {
    let isLast = view.hasEnded
    defer { if isLast { hasDroppedAll.store(true, ordering: .releasing) } }
    let root = kernelNumber(view.root)
    // Where the kernel has let go of the mount, it does not know the root either.
    if session.tell(.attributes(root)) {
      // Nobody keeps it from forgetting these, nor what it has of files.
      for number in nodes.known { session.tell(.attributes(kernelNumber(number))) }
      bringPagesBack()
      let files = nodes.opened
      KernelSweep.run(nodes, root: view.root) { [session, shown = view.root] number in
        files.contains(number) || session.tell(.content(number == shown ? root : number.value))
      }
    }
    didDrop()
  }

  private func didDrop() {
    // A file that nobody has open any more shall not count as open when the keys go.
    closing.finish()
    buffers.overwriteAll()
  }

  /// Somebody else has changed something, and goes on when this returns.
  func didChange(_ found: [ViewChange]) {
    for change in found {
      switch change {
      // Of a folder that it does not know the kernel has no entries.
      case .name(_, let folder) where folder == view.root || nodes.isKnown(folder):
        changedFolders.withLock { _ = $0.insert(folder) }
      case .name: break
      case .content(let number): writers.disturb(number)
      case .place(let number, let name, let folder): wasMoved(number, name, to: folder)
      case .attributes: break
      }
    }
    let told = toKernel(found)
    let ticket = changes.add(told)
    guard let other = Self.answering else {
      if !ContainerView.isWorkingHere { changes.wait(for: ticket) }
      return
    }
    // The other mount may show another folder: its numbers differ at the root.
    let isAwaited = other.changes.concerns(other.toKernel(found))
    if !isAwaited { other.waiting { changes.wait(for: ticket) } }
  }

  private func toKernel(_ found: [ViewChange]) -> [KernelChange] {
    var places: [KernelChange] = []
    var names: [KernelChange] = []
    for case .place(let number, let name, let folder) in found where nodes.isKnown(number) && isShown(folder) {
      places += [.expiry(name, in: kernelNumber(folder)), .place(of: kernelNumber(number))]
      names.append(.name(name, in: kernelNumber(folder)))
    }
    // Before the old name: what the kernel forgets with that is no longer the folder then. It is not to forget the new one.
    return places + found.flatMap(toKernel).filter { !names.contains($0) }
  }

  /// Not the vault's root in a mount of another folder, whose kernel takes that number for its own root.
  private func isShown(_ node: InodeNumber) -> Bool { number(node.value) == node }

  private func toKernel(_ change: ViewChange) -> [KernelChange] {
    if !isShown(change.node) { return [] }
    return switch change {
    case .place: []
    // Of a name that the kernel does not know it would forget nothing: so the folder's entries as well.
    case .name(let name, let folder): [.name(name, in: kernelNumber(folder)), .content(kernelNumber(folder))]
    case .attributes(let number): [.attributes(kernelNumber(number))]
    case .content(let number):
      // Only who has opened it for writing can store to a page of it.
      writers.contains(number)
        ? [.content(kernelNumber(number)), .end(kernelNumber(number))] : [.content(kernelNumber(number))]
    }
  }

  /// Tells the kernel of a change. It may be about to know a file that it has only just been told of, and then takes for true what
  /// it was told: so it is to be told of that once more, and this is `false`.
  static func tell(
    _ change: KernelChange, _ session: FuseSession, _ nodes: KernelNodes,
    lastByte: (InodeNumber) -> (offset: UInt64, value: UInt8)?
  ) -> Bool {
    if case .place(let node) = change {
      return session.present.map { $0.showPlace(of: InodeNumber(value: node)) } ?? true
    }
    if session.tell(change, lastByte: lastByte) { return true }
    return switch change {
    // Who looks a name up has locked its folder until it knows what it found.
    case .name, .expiry, .place, .end: true
    case .attributes(let node), .content(let node, _): !nodes.isKnown(InodeNumber(value: node))
    }
  }

  /// Nil where the kernel was told of this end already: a program may have stored to that byte since.
  static func lastByte(
    of number: InodeNumber, _ view: ContainerView, _ writers: FileWriters
  ) -> (offset: UInt64, value: UInt8)? {
    guard let file = try? view.open(number, .reading) else { return nil }
    defer { try? file.close() }
    var value: UInt8 = 0
    guard let size = try? file.attributes().byteCount else { return nil }
    if size == 0 {
      // Of what is empty the kernel is told by nothing that it is given: it hears of the next end, also where it was told of that before.
      writers.willMoveEnd(of: number)
      return nil
    }
    guard (try? withUnsafeMutableBytes(of: &value) { try file.read(at: size - 1, into: $0) }) == 1
    else { return nil }
    return writers.tellsEnd(size, of: number) ? (size - 1, value) : nil
  }

  /// Runs `body`, which waits until a kernel has been told, unless so many of this mount's threads do that too few would be left to
  /// answer those for whom that kernel waits.
  func waiting(_ body: () -> Void) {
    defer { waiterCount.subtract(1, ordering: .relaxed) }
    guard waiterCount.add(1, ordering: .relaxed).newValue <= Self.waiterLimit else { return }
    Turn.pausingOwn(body)
  }

  private static let waiterLimit = FuseSession.threadCount / 2
}
