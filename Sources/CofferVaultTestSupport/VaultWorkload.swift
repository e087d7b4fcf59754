internal import CofferTestSupport

/// Draws changes from a seed, knowing what the vault must hold: the same seed and start give the same changes wherever
/// they are drawn, so that one process can do what another only foresees.
public struct VaultWorkload: Sendable {
  /// What happens next.
  public enum Step: Sendable {
    case change(VaultChange)
    /// Everything so far is to be made durable, as state number `state`.
    case commit(state: Int)
    /// The same, by closing the vault and opening it again.
    case reopen(state: Int)
    /// What was written through one handle is to be made durable, and everything else that has joined.
    case sync(handle: Int, state: Int)
    /// The vault is to be copied to another place; that begins with a commit.
    case backup(state: Int)
    case race(WriterRace)

    /// The state that is durable when the step is done.
    public var state: Int? {
      switch self {
      case .change: nil
      case .commit(let state), .reopen(let state), .sync(_, let state), .backup(let state): state
      case .race(let race): race.lastState
      }
    }
  }

  /// Bytes of files: inside the record, and in objects of a block, of a few blocks, of more than one map page.
  public enum Sizes: Sendable {
    case small, large

    var choices: [Int] {
      switch self {
      case .small: [0, 1, 700, 4096, 4097, 9000]
      case .large: [0, 4096, 20_000, 65_536, 300_000]
      }
    }
  }

  /// What the vault must hold after every step so far.
  public private(set) var expected: ExpectedVault
  /// What is durable after the last step that made anything so: one state, or as many as its number grew by.
  public private(set) var states: [ExpectedVault] = []
  /// Under what the last step that was drawn is done.
  public private(set) var circumstances: Set<Circumstance> = []
  private var generator: SeededGenerator
  private let sizes: Sizes
  private var stateCount = 0
  private var changesUntilCommit = 1
  /// Changes that come next, and then a sync of the handle that was written through last.
  private var planned: [VaultChange]?
  private var lastWritten = 0
  /// That were not drawn yet.
  private var ends: [End] = []
  /// For each handle, whether a commit was made since it was opened.
  private var handlesAreOld: [Bool] = []
  /// For each reader, its file, what it reads, and whether a commit was made since.
  private var readers: [(identity: UInt64, content: [UInt8], isOld: Bool)] = []

  /// - Parameter expected: what the vault holds at the start.
  public init(seed: UInt64, from expected: ExpectedVault = ExpectedVault(), sizes: Sizes = .small) {
    self.expected = expected
    // What was held ended with the process that held it.
    self.expected.handles = []
    self.expected.unjoined = [:]
    self.sizes = sizes
    generator = SeededGenerator(seed: seed)
  }

  public mutating func next() -> Step {
    let step = nextStep()
    circumstances = []
    if step.state != nil {
      for position in handlesAreOld.indices { handlesAreOld[position] = true }
      for position in readers.indices { readers[position].isOld = true }
    }
    switch step {
    case .change(let change): follow(change)
    case .commit: commit()
    case .reopen:
      commit()
      // What was held ends with the vault.
      expected.handles = []
      handlesAreOld = []
      readers = []
      circumstances.insert(.closing)
    case .sync(let handle, _):
      expected.unjoined[expected.handles[handle]] = nil
      states = [expected.joined]
      if expected.unjoined.keys.contains(where: { (expected.content(of: $0)?.count ?? 0) >= Self.muchByteCount }) {
        circumstances.insert(.syncBesideDirty)
      }
    case .backup:
      commit()
      circumstances.insert(.backup)
    case .race(let race): states = race.apply(to: &expected)
    }
    if handlesAreOld.contains(true) { circumstances.insert(.handleAcrossCommit) }
    if readers.contains(where: { $0.isOld && expected.content(of: $0.identity) != $0.content }) {
      circumstances.insert(.snapshotAcrossCommit)
    }
    return step
  }

  private static let muchByteCount = 20_000

  private mutating func commit() {
    expected.unjoined = [:]
    states = [expected]
  }

  private mutating func follow(_ change: VaultChange) {
    switch change {
    case .openHandle: handlesAreOld.append(false)
    case .writeThrough(let handle, _, _): lastWritten = handle
    case .closeHandle(let handle): handlesAreOld.remove(at: handle)
    case .hold(let path):
      guard let identity = expected.identities[path], let content = expected.content(of: identity) else { break }
      readers.append((identity, content, false))
    case .release: if !readers.isEmpty { readers.removeFirst() }
    default: break
    }
    change.apply(to: &expected)
  }

  private mutating func nextStep() -> Step {
    if let planned {
      guard let change = planned.first else {
        self.planned = nil
        stateCount += 1
        return .sync(handle: lastWritten, state: stateCount)
      }
      self.planned?.removeFirst()
      return .change(change)
    }
    if changesUntilCommit > 0 {
      changesUntilCommit -= 1
      return .change(nextChange())
    }
    changesUntilCommit = Int.random(in: 1...4, using: &generator)
    return nextEnd()
  }

  /// What makes changes durable. Each is drawn once before any is drawn again, so that a short run has most of them.
  private enum End: CaseIterable {
    case commit, again, reopen, sync, plannedSync, backup, race
  }

  private mutating func nextEnd() -> Step {
    if ends.isEmpty { ends = End.allCases.shuffled(using: &generator) }
    let position = ends.indices.last { isPossible(ends[$0]) }
    stateCount += 1
    switch position.map({ ends.remove(at: $0) }) ?? .commit {
    case .commit, .again: return .commit(state: stateCount)
    case .reopen: return .reopen(state: stateCount)
    case .backup: return .backup(state: stateCount)
    case .sync: return .sync(handle: Int.random(in: expected.handles.indices, using: &generator), state: stateCount)
    case .plannedSync:
      planned = planSync()
      stateCount -= 1
      return nextStep()
    case .race:
      let race = nextRace()
      stateCount = race.lastState
      return .race(race)
    }
  }

  private func isPossible(_ end: End) -> Bool {
    switch end {
    case .commit, .again, .reopen, .backup: true
    case .sync: !expected.handles.isEmpty
    case .plannedSync, .race: Set(expected.identities.values).count > 1
    }
  }

  /// Names of two files.
  private mutating func twoFiles() -> (String, String) {
    while true {
      guard let one = anyFile(), let two = anyFile() else { preconditionFailure("there are no two files") }
      if expected.identities[one] != expected.identities[two] { return (one, two) }
    }
  }

  /// Changes that give one file much that has not joined and another a little; the sync of the second follows them.
  private mutating func planSync() -> [VaultChange] {
    let (large, small) = twoFiles()
    let much = generator.bytes(Self.muchByteCount + Int.random(in: 0..<10_000, using: &generator))
    var changes: [VaultChange] = []
    var handles = expected.handles
    for (path, bytes) in [(large, much), (small, generator.bytes(700))] {
      guard let identity = expected.identities[path] else { continue }
      let known = handles.firstIndex(of: identity)
      if known == nil {
        changes.append(.openHandle(path: path))
        handles.append(identity)
      }
      changes.append(.writeThrough(handle: known ?? handles.count - 1, offset: 0, bytes: bytes))
    }
    return changes
  }

  private mutating func nextRace() -> WriterRace {
    let (one, two) = twoFiles()
    let writes = [one, two].map { path in
      let size = expected.identities[path].flatMap { expected.content(of: $0) }?.count ?? 0
      return (0..<WriterRace.rounds).map { _ in
        let count = [1, 700, 5000].randomElement(using: &generator) ?? 1
        return (Int.random(in: 0...size, using: &generator), generator.bytes(count))
      }
    }
    return WriterRace(paths: [one, two], writes: writes, lastState: stateCount - 1 + WriterRace.stateCount)
  }

  private mutating func nextChange() -> VaultChange {
    while true {
      switch Int.random(in: 0..<44, using: &generator) {
      case 0..<8:
        let path = newPath()
        if expected.nodes[path] == .folder { continue }
        let count = sizes.choices.randomElement(using: &generator) ?? 0
        return .put(
          path: path, bytes: generator.bytes(count), permissions: UInt16.random(in: 0...0o777, using: &generator))
      case 8, 9:
        let path = newPath()
        if expected.nodes[path] != nil { continue }
        return .makeFolder(path: path)
      case 10..<13:
        guard let old = anyPath(), case let new = newPath(), new != old, !new.hasPrefix(old + "/") else { continue }
        switch (expected.nodes[old], expected.nodes[new]) {
        case (.file, .file), (.symbolicLink, .file), (.file, .symbolicLink), (_, nil):
          return .rename(path: old, to: new)
        case (.folder, .folder): if isEmpty(new) { return .rename(path: old, to: new) }
        default: break
        }
      case 13..<16:
        guard let path = anyPath(), isEmpty(path) else { continue }
        return .remove(path: path)
      case 16:
        let name = "setting \(Int.random(in: 0..<3, using: &generator))"
        return .set(setting: name, to: generator.once(in: 3) ? nil : generator.bytes(50))
      case 17, 18:
        guard let path = anyPath(), case .file = expected.nodes[path] else { continue }
        return .hold(path: path)
      case 19, 20:
        guard let path = anyFile(), case let new = newPath(), expected.nodes[new] == nil else { continue }
        return .link(path: path, to: new)
      case 21:
        let path = newPath()
        if expected.nodes[path] != nil { continue }
        return .symbolicLink(path: path, target: generator.bytes(20).map { $0 | 1 })
      case 22:
        guard let one = anyFile(), let two = anyFile(), one != two else { continue }
        return .exchange(path: one, with: two)
      case 23, 24:
        guard let path = anyFile(), case .file(_, _, let attributes) = expected.nodes[path] else { continue }
        let name = "user.\(Int.random(in: 0..<3, using: &generator))"
        if attributes[name] != nil, generator.once(in: 2) { return .setAttribute(path: path, name: name, to: nil) }
        return .setAttribute(path: path, name: name, to: generator.bytes(40))
      case 25..<31:
        guard let path = heldFile() ?? anyFile(), case .file(let bytes, _, _) = expected.nodes[path] else { continue }
        let place = Int.random(in: 0...(bytes.count + (generator.once(in: 4) ? 30_000 : 0)), using: &generator)
        let count = sizes.choices.randomElement(using: &generator) ?? 0
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: return .truncate(path: path, byteCount: place)
        case 1: return .punch(path: path, range: place..<(place + count))
        default: return .write(path: path, offset: place, bytes: generator.bytes(min(count, 20_000)))
        }
      case 31: return .release
      case 32, 33:
        guard let path = anyFile() else { continue }
        return .hold(path: path)
      case 34..<37:
        guard expected.handles.count < 3, let path = anyFile() else { continue }
        return .openHandle(path: path)
      case 37:
        guard let handle = expected.handles.indices.randomElement(using: &generator) else { continue }
        return .closeHandle(handle)
      default:
        guard let handle = expected.handles.indices.randomElement(using: &generator) else { continue }
        let size = expected.content(of: expected.handles[handle])?.count ?? 0
        let count = [1, 5000, 30_000].randomElement(using: &generator) ?? 1
        return .writeThrough(
          handle: handle, offset: Int.random(in: 0...size, using: &generator), bytes: generator.bytes(count))
      }
    }
  }

  /// A path in a folder that is there; few, so that operations meet.
  private mutating func newPath() -> String {
    let folders = expected.nodes.filter { $0.value == .folder && $0.key.count < 8 }.keys.sorted()
    let folder = generator.once(in: 2) ? folders.randomElement(using: &generator) : nil
    let name = ["a", "b", "c", "dd", "a longer name"].randomElement(using: &generator) ?? "a"
    return folder.map { $0 + "/" + name } ?? name
  }

  private mutating func anyPath() -> String? { expected.nodes.keys.sorted().randomElement(using: &generator) }

  private mutating func anyFile() -> String? {
    let files = expected.nodes.filter { if case .file = $0.value { true } else { false } }
    return files.keys.sorted().randomElement(using: &generator)
  }

  /// Sometimes, a file of which somebody reads an earlier version.
  private mutating func heldFile() -> String? {
    guard generator.once(in: 2), let held = readers.first?.identity else { return nil }
    return expected.identities.filter { $0.value == held }.keys.min()
  }

  private func isEmpty(_ path: String) -> Bool { !expected.nodes.keys.contains { $0.hasPrefix(path + "/") } }
}
