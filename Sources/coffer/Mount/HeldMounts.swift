#if canImport(CofferMount)
  internal import CofferContainer
  internal import CofferFiles
  internal import CofferMount
  internal import CofferSystem
  internal import Dispatch
  internal import Synchronization

  /// The mounts of the vault that the agent holds.
  final class HeldMounts: Sendable {
    private let container: Container
    private let claims: MountClaims?
    private let state = Mutex(State())

    private struct State {
      var servers: [MountServer] = []
      var details: [ObjectIdentifier: AgentStatus.Mount] = [:]
      /// Of mounts that have ended by themselves.
      var formerLosses: [UntoldLoss] = []
      /// Uses of mounts that have ended.
      var formerUses = 0
      var isEnding = false
    }

    /// - Parameter claims: where it is said which mounts are this process's, a file that it has open nowhere else.
    init(_ container: Container, claims: OwnedDescriptor? = nil) {
      self.container = container
      self.claims = claims.map(MountClaims.init)
    }

    /// Those that have not ended, whatever the kernel still has of others for programs that stand in them.
    private var present: [MountServer] { state.withLock(\.servers).filter { !$0.hasEnded } }

    /// As of ``MountServer/mappedByteCount``.
    var mappedByteCount: UInt64 {
      present.reduce(0) { min($0 + $1.mappedByteCount, 1 << 60) }
    }

    /// Has the kernel give back what programs have stored to mappings.
    func bringPagesBack() { for server in present { server.bringPagesBack() } }

    /// What is lost that programs had stored to mappings, since this was asked last; nil where nothing is.
    func takeLoss() -> String? {
      let taken = losses.map { $0.take() }
      state.withLock { state in state.formerLosses.removeAll { !$0.isUntold } }
      return taken.contains(true) ? MountError.loss : nil
    }

    /// The same, and somebody else is to be told as well.
    var loss: String? { losses.contains(where: \.isUntold) ? MountError.loss : nil }

    private var losses: [UntoldLoss] {
      state.withLock { state in state.servers.map(\.loss) + state.formerLosses }
    }

    /// Canonical paths of the mount points.
    var places: [String] { present.map(\.presentPlace) }
    /// The same with what is shown there, and those that have ended while the system has them still.
    var details: [AgentStatus.Mount] {
      let (details, servers) = state.withLock { ($0.details, $0.servers) }
      return servers.compactMap { server in
        guard var found = details[ObjectIdentifier(server)] else { return nil }
        found.detached = !server.isInTree
        found.hidden = server.isHidden
        found.place = server.presentPlace
        found.device = server.isLetGo && found.detached ? nil : server.deviceNumber
        found.hasEnded = server.hasEnded
        if server.hasEnded { (found.stored, found.pagesLost) = storing(server) }
        return found
      }
    }

    /// As of ``AgentStatus/Mount``, of a mount that has ended.
    private func storing(_ server: MountServer) -> (stored: Bool, pagesLost: Bool) {
      switch server.shortfall {
      // There has been room since.
      case .notStored(isFull: true, let pagesLost) where !container.waitsForRoom: (true, pagesLost)
      case .notStored(_, let pagesLost): (false, pagesLost)
      case .pagesLost: (true, true)
      default: (true, false)
      }
    }

    /// Those that are still seen there: a mount that was taken out of the tree lives on while programs use files in it.
    var placesInTree: [String] { present.filter(\.isInTree).map(\.presentPlace) }

    /// The place of another mount that shows files of `server`'s, where programs can change them through either; nil where there is
    /// none. A file that has names in two folders is not looked for.
    func place(sharing server: MountServer) -> String? {
      present.first { other in
        other !== server && other.isInTree && !(other.view.isReadOnly && server.view.isReadOnly)
          && other.view.overlaps(server.view)
      }?.presentPlace
    }

    /// Rises while programs use the mounts.
    var uses: Int { state.withLock { state in state.servers.reduce(state.formerUses) { $0 + $1.view.uses } } }

    /// Mounts the folder at `path` on `place`, a canonical path; returns when it is live.
    func mount(_ path: VaultPath, at place: String, isReadOnly: Bool, _ settings: MountSettings = MountSettings())
      throws -> MountServer
    {
      let view = try container.view(of: path, isReadOnly: isReadOnly)
      let server = try MountServer.mount(view, at: place, settings) { [weak self] server in
        self?.forget(server)
      }
      let isTooLate = state.withLock { state in
        if state.isEnding { return true }
        state.servers.append(server)
        state.details[ObjectIdentifier(server)] = AgentStatus.Mount(
          place: place, folder: String(decoding: path.bytes, as: UTF8.self), readOnly: view.isReadOnly,
          allowOther: settings.allowsOthers, detached: false, id: Self.newID)
        return false
      }
      claims?.take(server.deviceNumber)
      if isTooLate {
        try? server.end(isForced: true)
        server.abandon()
        throw MountError.failed
      }
      // Policy may have changed since the gate was asked, when nobody knew of this mount.
      do { try container.checkMount() } catch {
        try? server.end(isForced: true)
        if server.isGone { forget(server) }
        throw error
      }
      // It may have ended before it was kept.
      if server.isGone { forget(server) }
      return server
    }

    /// As of ``AgentStatus/Mount/id``; nil where it is gone.
    func server(identified id: String) -> MountServer? {
      state.withLock { state in state.servers.first { state.details[ObjectIdentifier($0)]?.id == id } }
    }

    private static var newID: String { String(UInt64.random(in: .min ... .max), radix: 16) }

    /// The mount that is seen at a canonical path here, or was made there and is seen nowhere; of several the last that has not ended.
    func server(at place: String) -> MountServer? {
      let servers = state.withLock(\.servers).filter { $0.presentPlace.isSamePath(as: place) }
      return servers.last { !$0.hasEnded } ?? servers.last
    }

    private func forget(_ server: MountServer) {
      state.withLock { state in
        guard let position = state.servers.firstIndex(where: { $0 === server }) else { return }
        state.servers.remove(at: position)
        state.details[ObjectIdentifier(server)] = nil
        // Whoever waits for its end may still take it.
        if server.loss.isUntold { state.formerLosses.append(server.loss) }
        state.formerUses += server.view.uses
      }
      claims?.giveUp(server.deviceNumber) {
        state.withLock(\.servers).contains { $0.deviceNumber == server.deviceNumber }
      }
    }

    /// Ends all mounts where policy does not allow them any more; returns where they were.
    @discardableResult
    func recheck() -> [String] {
      let places = places
      if places.isEmpty { return [] }
      do { try container.checkMount() } catch {
        endServers(forGood: false)
        return places
      }
      return []
    }

    /// The same for a person who waits for a command: what they write there next is not in the vault.
    func recheckTelling() {
      let places = recheck()
      for place in places {
        Output.note(
          "the mount at \(PathText.shown(Array(place.utf8))) has ended, because the policy does not allow it: what is written to that "
            + "folder now is not in the vault")
      }
      // Where none has ended, whoever ends one is to be told.
      if !places.isEmpty, let loss = takeLoss() { Output.note(loss) }
    }

    /// Brings what programs wrote into the vault, and ends all mounts, whoever uses them; returns what is lost of what they had stored
    /// to mappings. No more can be made where the vault is given back.
    @discardableResult
    func endAll(forGood: Bool = false) -> String? {
      endServers(forGood: forGood)
      return takeLoss()
    }

    /// The same; what is lost is still to be told.
    private func endServers(forGood: Bool) {
      let servers = state.withLock { state in
        if forGood { state.isEnding = true }
        return state.servers
      }
      // All of them before the first one is waited for: to end one takes as long as the kernel likes.
      for server in servers where !server.hasEnded { server.stopPassing() }
      for server in servers where !server.hasEnded { server.dropAll() }
      // That takes no longer for many. What cannot be stored is told below, or by the vault.
      if !servers.isEmpty { try? container.commit() }
      let ending = DispatchGroup()
      for server in servers where !server.hasEnded || server.isInTree {
        ending.enter()
        let work: @Sendable () -> Void = { [self] in
          end(server)
          ending.leave()
        }
        do { try NewThread.start(work) } catch { work() }
      }
      ending.wait()
      if forGood { for server in servers { server.abandon() } }
    }

    private func end(_ server: MountServer) {
      do {
        try server.end(isForced: true)
      } catch {
        switch error {
        // It was told here, and is to be told to a person; of the mount it may be forgotten already.
        case .pagesLost, .notStored(_, arePagesLost: true):
          let loss = UntoldLoss()
          loss.note()
          state.withLock { $0.formerLosses.append(loss) }
        // What else could not be stored the vault tells.
        default: break
        }
      }
    }
  }
#else
  internal import CofferContainer
  internal import CofferSystem

  /// There are no mounts on this system.
  final class HeldMounts: Sendable {
    let places: [String] = []
    let details: [AgentStatus.Mount] = []
    let placesInTree: [String] = []
    let uses = 0
    let mappedByteCount: UInt64 = 0

    init(_ container: Container, claims: OwnedDescriptor? = nil) {}

    func recheck() {}
    func recheckTelling() {}
    func bringPagesBack() {}
    func takeLoss() -> String? { nil }
    let loss: String? = nil
    @discardableResult
    func endAll(forGood: Bool = false) -> String? { nil }
  }
#endif
