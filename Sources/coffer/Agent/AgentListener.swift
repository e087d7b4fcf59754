internal import CofferKeys
internal import CofferSystem
internal import Synchronization

/// Where clients find an agent: a socket, and the name that only one agent has.
///
/// What others remove is made anew. The system empties a user's runtime folder when their last session ends; programs and mounts may go
/// on, and without this nobody could lock or unlock what they use, not even in the next session.
final class AgentListener: Sendable {
  private struct Found: Sendable {
    let place: AgentPlace
    /// Held as long as the agent is to be found there.
    let name: OwnedDescriptor
    /// Nil where nothing was found by the place's path.
    let socket: FileStatus?

    var isThere: Bool { socket.flatMap { place.found?.isSameFile(as: $0) } ?? false }
    func remove() { if isThere { place.remove() } }
  }

  private struct State {
    /// Nil before ``listen(at:name:)``.
    var present: Found?
    var isOver = false
  }

  private let vault: VaultID
  private let state = Mutex(State())
  /// Looks that are asked for and not done. They may take as long as a disk does: one at a time, and another one for who asks meanwhile.
  private let asked = Atomic(0)

  init(_ vault: VaultID) { self.vault = vault }

  /// From here on clients find the agent.
  ///
  /// - Parameter name: from the place's `takeName()`.
  func listen(at place: AgentPlace, name: OwnedDescriptor) throws -> LocalSocket {
    let socket = try place.listen()
    state.withLock { $0.present = Found(place: place, name: name, socket: place.found) }
    return socket
  }

  /// Looks whether clients find the agent, and first of all where they look first, for the runtime folder before others; where they do not,
  /// and it can be mended, tells at which socket they come from now on. May take as long as a disk does.
  func lookAfter(tell: (LocalSocket) -> Void) {
    guard asked.wrappingAdd(1, ordering: .acquiringAndReleasing).oldValue == 0 else { return }
    var seen: Int
    repeat {
      seen = asked.load(ordering: .acquiring)
      look(tell)
    } while !asked.compareExchange(expected: seen, desired: 0, ordering: .acquiringAndReleasing).exchanged
  }

  private func look(_ tell: (LocalSocket) -> Void) {
    guard let former = state.withLock({ $0.isOver ? nil : $0.present }), let place = try? AgentPlace.again(of: vault)
    else { return }
    let hasName = place.isTaken(by: former.name)
    if hasName, former.isThere, place.isSame(as: former.place) { return }
    // Who else holds the name there is the agent that clients mean.
    guard let name = hasName ? former.name : try? place.takeName(), let socket = try? place.listen() else { return }
    let next = Found(place: place, name: name, socket: place.found)
    let isOver = state.withLock { state in
      if !state.isOver { state.present = next }
      return state.isOver
    }
    if isOver { return next.remove() }
    former.remove()
    tell(socket)
  }

  /// From here on nobody finds the agent. It keeps its name as long as this is there.
  func remove() {
    let present = state.withLock { state in
      state.isOver = true
      return state.present
    }
    present?.remove()
  }
}
