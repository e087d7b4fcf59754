public import CofferFiles
internal import CofferPolicy
internal import CofferSystem
internal import CofferVault
internal import Synchronization

/// A part of a container's files, from one folder down, as one client sees it: a mount, later an app.
///
/// The client names files by number, and knows no number but those that the view gave it. Every operation passes one choke
/// point, ``permit(_:_:)``, which also stands before each read and write of a file that is open already: once the view has
/// ended, or policy took it away, nothing passes any more.
public final class ContainerView: Sendable {
  public enum Access: Sendable { case reading, writing }

  /// The folder that the client sees as its root.
  public let root: InodeNumber
  public let isReadOnly: Bool

  let container: Container
  private let origin = ChangeOrigin()
  private let ended = Atomic(false)
  private let useCount = Atomic(0)
  private let hold = Mutex<NodeHold?>(nil)
  /// Among the container's views.
  private let beginning: (number: Int, hasOthers: Bool)

  var vault: Vault { container.vault }

  init(_ container: Container, root: InodeNumber, isReadOnly: Bool) {
    self.container = container
    self.root = root
    self.isReadOnly = isReadOnly || container.isReadOnly
    beginning = container.views.didBegin(container.vault)
  }

  deinit {
    end()
    letGoOfAll()
  }

  /// Rises with what the client does: tells an agent that somebody is at work.
  public var uses: Int { useCount.load(ordering: .relaxed) }

  /// Content of locked classes cannot be read before an unlock.
  public var isLocked: Bool { container.isLocked }

  /// The container has other views, or had some since this one began: what this one's client remembers of a file may be older
  /// than the file.
  public var hasOthers: Bool { beginning.hasOthers || container.views.hasFollower(of: beginning.number) }

  /// Whether one of two views of a container shows the other's root: both show its files then.
  public func overlaps(_ other: ContainerView) -> Bool { shows(other.root) || other.shows(root) }

  /// Looks above the root, of which the client learns nothing.
  private func shows(_ folder: InodeNumber) -> Bool {
    var folder = folder
    while folder != root {
      guard let parent = try? vault.parent(of: folder), parent != folder else { return false }
      folder = parent
    }
    return true
  }

  /// Nothing passes any more. Who told the client of a file before and finds this `false` told it before the end.
  public var hasEnded: Bool { ended.load(ordering: .sequentiallyConsistent) }

  /// Nothing passes any more, through open files either.
  public func end() {
    if !ended.exchange(true, ordering: .sequentiallyConsistent) { container.views.didEnd(container.vault) }
  }

  /// Keeps what loses its last name, with everything that it has, where `holds` says that the client may still ask for it, until
  /// ``letGoOfAll()``. Whoever holds something no more says so by ``letGo(of:)``. `holds` must be quick, and not use the view.
  ///
  /// - Parameter hearing: as of ``Vault/hold(_:hearing:)``.
  public func hold(
    _ holds: @escaping @Sendable (InodeNumber) -> Bool, hearing: @escaping @Sendable () -> () -> Bool
  ) {
    let made = vault.hold(holds, hearing: hearing)
    hold.withLock { $0 = made }
  }

  /// The client asks for nothing any more.
  public func letGoOfAll() {
    hold.withLock { hold in
      defer { hold = nil }
      return hold
    }?.letGoOfAll()
  }

  /// See ``Vault/mayGainRoom``.
  public var mayGainRoom: Bool { vault.mayGainRoom }
  /// See ``Vault/hasUnsettledRemovals``.
  public var hasUnsettledRemovals: Bool { vault.hasUnsettledRemovals }
  /// See ``Vault/removalCount``.
  public var removalCount: Int { vault.removalCount }
  /// See ``Vault/settleRemovals(until:)``.
  public func settleRemovals(until end: SuspendingClock.Instant) { vault.settleRemovals(until: end) }

  /// The client cannot ask for this any more.
  public func letGo(of number: InodeNumber) { hold.withLock(\.self)?.letGo(of: number) }

  /// **The choke point.** Throws `ended`, and `readOnly` for a change where only reading is allowed.
  func permit(_ access: Access, _ number: InodeNumber) throws(ViewError) {
    if ended.load(ordering: .acquiring) { throw ViewError.ended }
    if access == .writing, isReadOnly { throw ViewError.readOnly }
    useCount.wrappingAdd(1, ordering: .relaxed)
  }

  /// Runs `body`, permitted, as this view's own; with this module's failures.
  func perform<Result>(
    _ access: Access, on number: InodeNumber, _ body: (Vault) throws -> Result
  ) throws(ViewError) -> Result {
    try permit(access, number)
    do {
      return try origin.perform { try body(vault) }
    } catch {
      throw ViewError(wrapping: error)
    }
  }

  /// Calls `observer` with what others change, on their threads, until the observation goes.
  public func observeChanges(_ observer: @escaping @Sendable ([ViewChange]) -> Void) -> ContainerObservation {
    ContainerObservation(
      vault.observeChanges(except: origin) { changes in
        observer(
          changes.map { change in
            switch change {
            case .name(let name, let folder): .name(name, in: folder)
            case .place(let number, let name, let folder): .place(of: number, name: name, in: folder)
            case .attributes(let number): .attributes(of: number)
            case .content(let number): .content(of: number)
            }
          })
      })
  }

  /// Calls `body` when the content of locked classes is about to go, and when it has gone, on the thread that locks: what
  /// the client has in memory of it goes too.
  public func observeLocking(_ body: @escaping @Sendable () -> Void) -> ContainerObservation {
    container.observe { event in if event != .didBecomeAvailable { body() } }
  }

  /// Makes everything durable that was written so far.
  public func commitAll() throws(ViewError) {
    do { try container.storeAll() } catch { throw ViewError(wrapping: error) }
  }

  /// The calling thread works for a view: it must not wait without end until another has heard of its change.
  public static var isWorkingHere: Bool { ChangeOrigin.isObserver }
}

/// What somebody else changed, for a client that remembers what it was told.
public enum ViewChange: Sendable, Hashable {
  case name([UInt8], in: InodeNumber)
  /// A folder has come to lie elsewhere, or to be called something else.
  case place(of: InodeNumber, name: [UInt8], in: InodeNumber)
  case attributes(of: InodeNumber)
  case content(of: InodeNumber)

  /// What has changed: of a name its folder.
  public var node: InodeNumber {
    switch self {
    case .name(_, let folder): folder
    case .place(let number, _, _), .attributes(let number), .content(let number): number
    }
  }
}

extension Container {
  /// Opens the folder at `path` as a view. Asks the gate for `mount`.
  public func view(of path: VaultPath, isReadOnly: Bool) throws -> ContainerView {
    try gate.check(.owner, .mount, file: nil)
    return try ContainerError.catching {
      let attributes = try vault.attributes(at: path)
      guard attributes.kind == .directory else { throw VaultError.notADirectory }
      return ContainerView(self, root: attributes.number, isReadOnly: isReadOnly)
    }
  }

  /// Whether a mount that was permitted still is, as policy stands; throws the refusal.
  public func checkMount() throws { try gate.check(.owner, .mount, file: nil, isRepeated: true) }
}
