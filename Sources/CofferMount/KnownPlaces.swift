internal import CofferFiles
internal import Synchronization

/// Where files were found lately. A kernel that keeps what programs write believes no size but its own, as long as it knows
/// the file: so where another mount has written to a file, its name is forgotten, and looked up anew.
final class KnownPlaces: Sendable {
  struct Place: Sendable, Hashable {
    let folder: InodeNumber
    let name: [UInt8]
  }

  private static let limit = 4096

  private struct State {
    var recent: [InodeNumber: Place] = [:]
    var older: [InodeNumber: Place] = [:]
  }

  private let state = Mutex(State())

  func remember(_ number: InodeNumber, as name: [UInt8], in folder: InodeNumber) {
    state.withLock { state in
      if state.recent.count >= Self.limit {
        state.older = state.recent
        state.recent = [:]
      }
      state.recent[number] = Place(folder: folder, name: name)
    }
  }

  /// Nil where it is not known any more, or never was.
  subscript(number: InodeNumber) -> Place? { state.withLock { $0.recent[number] ?? $0.older[number] } }
}
