import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVault
import Testing

/// Random operations on a vault and on a model of it, compared after every one; reopened now and then.
@Suite struct ModelTests {
  private enum Node: Equatable {
    case file([UInt8])
    case folder([[UInt8]: Node])
  }

  /// The same promises as the vault's, in the simplest form.
  private struct Model {
    var root: [[UInt8]: Node] = [:]

    func node(_ path: ArraySlice<[UInt8]>) throws(VaultError) -> Node {
      var current = Node.folder(root)
      for name in path {
        guard case .folder(let names) = current else { throw .notADirectory }
        guard let next = names[name] else { throw .notFound }
        current = next
      }
      return current
    }

    func folder(_ path: ArraySlice<[UInt8]>) throws(VaultError) -> [[UInt8]: Node] {
      guard case .folder(let names) = try node(path) else { throw .notADirectory }
      return names
    }

    mutating func set(_ path: [[UInt8]], _ node: Node?) {
      func changed(_ names: [[UInt8]: Node], _ rest: ArraySlice<[UInt8]>) -> [[UInt8]: Node] {
        var names = names
        guard let first = rest.first else { return names }
        if rest.count == 1 {
          names[first] = node
        } else if case .folder(let inner) = names[first] {
          names[first] = .folder(changed(inner, rest.dropFirst()))
        }
        return names
      }
      root = changed(root, path[...])
    }

    mutating func put(_ path: [[UInt8]], _ bytes: [UInt8], replacing: Bool) throws(VaultError) {
      let names = try folder(path.dropLast())
      switch names[path[path.count - 1]] {
      case .folder: throw .isADirectory
      case .file where !replacing: throw .exists
      default: set(path, .file(bytes))
      }
    }

    mutating func makeFolder(_ path: [[UInt8]]) throws(VaultError) {
      guard try folder(path.dropLast())[path[path.count - 1]] == nil else { throw .exists }
      set(path, .folder([:]))
    }

    mutating func remove(_ path: [[UInt8]]) throws(VaultError) {
      guard let node = try folder(path.dropLast())[path[path.count - 1]] else { throw .notFound }
      if case .folder(let names) = node, !names.isEmpty { throw .directoryNotEmpty }
      set(path, nil)
    }

    mutating func rename(_ old: [[UInt8]], _ new: [[UInt8]], replacing: Bool) throws(VaultError) {
      guard let moved = try folder(old.dropLast())[old[old.count - 1]] else { throw .notFound }
      let target = try folder(new.dropLast())
      if case .folder = moved, new.count > old.count, new.starts(with: old) { throw .moveIntoItself }
      if let existing = target[new[new.count - 1]] {
        if old == new { return }
        guard replacing else { throw .exists }
        switch (moved, existing) {
        case (.file, .folder): throw .isADirectory
        case (.folder, .file): throw .notADirectory
        case (.folder, .folder(let names)) where !names.isEmpty: throw .directoryNotEmpty
        default: break
        }
      }
      set(old, nil)
      set(new, moved)
    }
  }

  @Test(arguments: 0..<12) func `the vault does what the model does`(seed: Int) throws {
    let fixture = try VaultFixture()
    var generator = SeededGenerator(seed: UInt64(seed))
    var vault = try fixture.create()
    var model = Model()
    // Few names, so that operations meet.
    func path() -> [[UInt8]] {
      (0..<Int.random(in: 1...3, using: &generator)).map { _ in
        [UInt8.random(in: 97...100, using: &generator), 0xff]
      }
    }
    for step in 0..<150 {
      let first = path()
      let second = path()
      let (one, two) = (try vaultPath(first), try vaultPath(second))
      let replacing = Bool.random(using: &generator)
      let outcome: (Result<Void, any Error>, Result<Void, any Error>)
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<3:
        let size = [0, 5, 3000, 5000, 70_000].randomElement(using: &generator) ?? 0
        let bytes = generator.bytes(size)
        outcome = (
          Result { try vault.importFile(fixture.source(bytes), to: one, replacing: replacing) },
          Result { try model.put(first, bytes, replacing: replacing) }
        )
      case 3..<6: outcome = (Result { try vault.makeDirectory(at: one) }, Result { try model.makeFolder(first) })
      case 6: outcome = (Result { try vault.remove(one) }, Result { try model.remove(first) })
      case 7, 8:
        outcome = (
          Result { try vault.rename(one, to: two, replacing: replacing) },
          Result { try model.rename(first, second, replacing: replacing) }
        )
      default:
        try vault.close()
        vault = try fixture.open()
        outcome = (.success(()), .success(()))
      }
      #expect(
        text(outcome.0) == text(outcome.1), "seed \(seed), step \(step): \(text(outcome.0)) and \(text(outcome.1))")
      let found = try tree(vault, .root)
      #expect(found == .folder(model.root), "seed \(seed), step \(step)")
      guard found == .folder(model.root) else { break }
    }
    try vault.close()
  }

  private func text(_ result: Result<Void, any Error>) -> String {
    switch result {
    case .success: "done"
    case .failure(let error): "\(error)"
    }
  }

  private func vaultPath(_ names: [[UInt8]]) throws -> VaultPath {
    try names.reduce(VaultPath.root) { try $0.appending($1) }
  }

  private func tree(_ vault: Vault, _ path: VaultPath) throws -> Node {
    var names: [[UInt8]: Node] = [:]
    for entry in try vault.list(path) {
      let child = try path.appending(entry.name)
      names[entry.name] =
        entry.attributes.kind == .directory ? try tree(vault, child) : .file(try vault.contents(of: child))
    }
    return .folder(names)
  }
}
