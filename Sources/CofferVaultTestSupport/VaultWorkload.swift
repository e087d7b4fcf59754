internal import CofferFiles
internal import CofferTestSupport
public import CofferVault

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
  }

  /// Bytes of files: inside the record, and in objects of a block, of a few blocks, of more than one map page.
  public enum Sizes: Sendable {
    case small, large

    var choices: [Int] {
      switch self {
      case .small: [0, 1, 700, 3072, 3073, 4096, 9000]
      case .large: [0, 3072, 20_000, 65_536, 300_000]
      }
    }
  }

  /// What the vault must hold after every step so far.
  public private(set) var expected: ExpectedVault
  private var generator: SeededGenerator
  private let sizes: Sizes
  private var stateCount = 0
  private var changesUntilCommit = 1

  /// - Parameter expected: what the vault holds at the start.
  public init(seed: UInt64, from expected: ExpectedVault = ExpectedVault(), sizes: Sizes = .small) {
    self.expected = expected
    self.sizes = sizes
    generator = SeededGenerator(seed: seed)
  }

  public mutating func next() -> Step {
    if changesUntilCommit == 0 {
      changesUntilCommit = Int.random(in: 1...4, using: &generator)
      stateCount += 1
      return generator.once(in: 6) ? .reopen(state: stateCount) : .commit(state: stateCount)
    }
    changesUntilCommit -= 1
    let change = nextChange()
    change.apply(to: &expected)
    return .change(change)
  }

  private mutating func nextChange() -> VaultChange {
    while true {
      switch Int.random(in: 0..<34, using: &generator) {
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
        guard let path = anyFile(), case .file(let bytes, _, _) = expected.nodes[path] else { continue }
        let place = Int.random(in: 0...(bytes.count + (generator.once(in: 4) ? 30_000 : 0)), using: &generator)
        let count = sizes.choices.randomElement(using: &generator) ?? 0
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: return .truncate(path: path, byteCount: place)
        case 1: return .punch(path: path, range: place..<(place + count))
        default: return .write(path: path, offset: place, bytes: generator.bytes(min(count, 20_000)))
        }
      default: return .release
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

  private func isEmpty(_ path: String) -> Bool { !expected.nodes.keys.contains { $0.hasPrefix(path + "/") } }
}

/// Does what a workload draws.
public struct WorkloadRun {
  public private(set) var vault: Vault
  private var readers: [FileSnapshot] = []
  private let open: () throws -> Vault
  private let scratch: String

  public init(scratch: String, open: @escaping () throws -> Vault) throws {
    self.open = open
    self.scratch = scratch
    vault = try open()
  }

  public mutating func perform(_ step: VaultWorkload.Step) throws {
    switch step {
    case .change(let change): try change.apply(to: vault, readers: &readers, scratch: scratch)
    case .commit: try vault.commit()
    case .reopen:
      readers = []
      try vault.close()
      vault = try open()
    }
  }

  /// Ends without a commit of what was not committed.
  public mutating func close() throws {
    readers = []
    try vault.close()
  }
}
