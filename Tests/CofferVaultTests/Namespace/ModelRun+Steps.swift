import CofferFiles
import CofferSystem
import CofferTestSupport

@testable import CofferVault

/// One random operation, and a look at what it touched.
extension ModelRun {
  func step() throws {
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<22: try make()
    case 22..<28: try put()
    case 28..<36: try link()
    case 36..<46: try unlink()
    case 46..<58: try rename()
    case 58..<62: try renameByPath()
    case 62..<68: try setAttributes()
    case 68..<78: try extendedAttribute()
    case 78..<84: try look()
    case 84..<88: try resolve()
    case 88..<91: try removeByPath()
    case 91..<94: try snapshot()
    case 94..<97: try holdOrLetGo()
    default: try readWhileChanging()
    }
  }

  // MARK: Choices

  private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }

  /// Few names, so that operations meet; now and then one that none can have.
  private func name() -> [UInt8] {
    if chance(40) {
      let wrong: [[UInt8]] = [[], [46], [46, 46], [97, 47], [0], [UInt8](repeating: 97, count: 256)]
      return wrong.randomElement(using: &generator) ?? []
    }
    return [UInt8.random(in: 97...102, using: &generator), 0xff]
  }

  private func node() -> InodeNumber {
    if chance(15), let dead = dead.randomElement(using: &generator) { return dead }
    let known = model.nodes.keys.sorted { $0.value < $1.value }.filter { $0 != .rootFolder }
    return known.randomElement(using: &generator) ?? .rootFolder
  }

  private func folder() -> InodeNumber {
    if chance(15) { return node() }
    let folders = model.nodes.values.filter { $0.kind == .directory && $0 !== model.root }.map(\.number)
    return folders.sorted { $0.value < $1.value }.randomElement(using: &generator) ?? .rootFolder
  }

  private func path() -> [[UInt8]] {
    if chance(60) { return [] }
    return [base]
      + (0..<Int.random(in: 0...3, using: &generator)).map { _ in [UInt8.random(in: 97...102, using: &generator), 0xff]
      }
  }

  private func vaultPath(_ names: [[UInt8]]) throws -> VaultPath {
    try names.reduce(VaultPath.root) { try $0.appending($1) }
  }

  private func target() -> [UInt8] {
    if chance(20) { return [[], [97, 0], [UInt8](repeating: 97, count: 4096)].randomElement(using: &generator) ?? [] }
    var parts = (0..<Int.random(in: 1...3, using: &generator)).map { _ -> [UInt8] in
      [[46], [46, 46], base, name().filter { $0 != 0 }].randomElement(using: &generator) ?? [46]
    }
    if chance(5) { parts.append([]) }
    if chance(4) { parts.insert([], at: 0) }
    let bytes = Array(parts.joined(separator: [47]))
    return bytes.isEmpty ? [46] : bytes
  }

  private func newNode() -> NewNode {
    NewNode(
      permissions: .random(in: 0...0xffff, using: &generator),
      owner: FileOwner(user: .random(in: 0...3, using: &generator), group: .random(in: 0 ... .max, using: &generator)))
  }

  // MARK: Names

  private func make() throws {
    let kinds: [NodeKind] = [.file, .directory, .directory, .symbolicLink, .fifo, .socket]
    let kind = kinds.randomElement(using: &generator) ?? .file
    let (name, folder, new, target) = (name(), folder(), newNode(), target())
    let made = try same("making \(kind) \(name) in \(folder.value)") {
      switch kind {
      case .file: .attributes(try vault.makeFile(name, in: folder, new))
      case .directory: .attributes(try vault.makeFolder(name, in: folder, new))
      case .symbolicLink: .attributes(try vault.makeSymbolicLink(name, in: folder, to: target, new))
      case .fifo, .socket: .attributes(try vault.makeSpecial(kind, name, in: folder, new))
      }
    } model: { number in
      .attributes(
        try model.make(
          kind, name, in: folder, new, to: kind == .symbolicLink ? target : [], number: number))
    }
    try compare(folder)
    try compare(made.number)
  }

  private func put() throws {
    let path = path()
    let replacing = Bool.random(using: &generator)
    let bytes = generator.bytes(chance(60) ? 5000 : Int.random(in: 0...60, using: &generator))
    let source = try fixture.source(bytes)
    let made = try same("storing \(path), replacing \(replacing)") {
      .attributes(try vault.importFile(source, to: vaultPath(path), replacing: replacing))
    } model: { number in
      .attributes(
        try model.put(
          path, bytes, NewNode(permissions: source.permissions), modified: source.modified ?? clock.now(),
          replacing: replacing, number: number))
    }
    try compare(made.number)
  }

  private func link() throws {
    let (number, name, folder) = (node(), name(), folder())
    try same("linking \(number.value) as \(name) in \(folder.value)") {
      .attributes(try vault.link(number, as: name, in: folder))
    } model: { _ in
      .attributes(try model.link(number, as: name, in: folder))
    }
    try compare(number)
    try compare(folder)
  }

  private func unlink() throws {
    let (name, folder) = (name(), folder())
    let inner = model.nodes[folder]?.names[name]?.number
    let isFolder = chance(3)
    try same("removing \(name) in \(folder.value), folder \(isFolder)") {
      if isFolder { try vault.removeFolder(name, in: folder) } else { try vault.unlink(name, in: folder) }
      return .done
    } model: { _ in
      if isFolder { try model.removeFolder(name, in: folder) } else { try model.unlink(name, in: folder) }
      return .done
    }
    try compare(folder)
    if let inner { try compare(inner) }
  }

  private func rename() throws {
    let (old, folder, new, newFolder) = (name(), folder(), name(), folder())
    let mode = RenameMode.allCases.randomElement(using: &generator) ?? .replace
    let met = [model.nodes[folder]?.names[old]?.number, model.nodes[newFolder]?.names[new]?.number]
    try same("renaming \(old) in \(folder.value) to \(new) in \(newFolder.value), \(mode)") {
      try vault.rename(old, in: folder, to: new, in: newFolder, mode: mode)
      return .done
    } model: { _ in
      try model.rename(old, in: folder, to: new, in: newFolder, mode)
      return .done
    }
    for number in met.compactMap({ $0 }) + [folder, newFolder] { try compare(number) }
  }

  private func renameByPath() throws {
    let (old, new) = (path(), path())
    let mode = RenameMode.allCases.randomElement(using: &generator) ?? .replace
    // The seed's own folder stays where it is.
    if old == [base] || new == [base] { return }
    try same("renaming \(old) to \(new), \(mode)") {
      try vault.rename(vaultPath(old), to: vaultPath(new), mode: mode)
      return .done
    } model: { _ in
      try model.rename(old, to: new, mode)
      return .done
    }
  }

  private func removeByPath() throws {
    let path = path()
    if path == [base] { return }
    let isRecursive = chance(3)
    try same("removing \(path), recursively \(isRecursive)") {
      if isRecursive { try vault.removeRecursively(vaultPath(path)) } else { try vault.remove(vaultPath(path)) }
      return .done
    } model: { _ in
      if isRecursive { try model.removeRecursively(path) } else { try model.remove(path) }
      return .done
    }
  }

  // MARK: Attributes

  private func setAttributes() throws {
    let number = node()
    var changes = AttributeChanges()
    func time() -> AttributeChanges.Time? {
      if chance(2) { return nil }
      if chance(3) { return .now }
      let seconds = Int64.random(in: -1 << 40...1 << 40, using: &generator)
      return .at(Timestamp(seconds: seconds, nanoseconds: chance(20) ? 1_000_000_000 : 999_999_999))
    }
    if chance(2) { changes.permissions = .random(in: 0...0xffff, using: &generator) }
    if chance(3) { changes.user = .random(in: 0 ... .max, using: &generator) }
    if chance(3) { changes.group = .random(in: 0...5, using: &generator) }
    (changes.accessed, changes.modified, changes.created) = (time(), time(), time())
    try same("changing attributes of \(number.value): \(changes)") {
      .attributes(try vault.setAttributes(changes, of: number))
    } model: { _ in
      .attributes(try model.setAttributes(changes, of: number))
    }
    try compare(number)
  }

  private func extendedAttribute() throws {
    let number = node()
    let names: [[UInt8]] = [[117], [117, 46, 97], [0xff], [117, 46, 98]]
    var name = names.randomElement(using: &generator) ?? [117]
    if chance(30) { name = [[], [0], [UInt8](repeating: 1, count: 256)].randomElement(using: &generator) ?? [] }
    let value = generator.bytes(chance(60) ? 65_537 : Int.random(in: 0...20, using: &generator))
    let mode = AttributeMode.allCases.randomElement(using: &generator) ?? .create
    switch Int.random(in: 0..<5, using: &generator) {
    case 0..<3:
      try same("setting attribute \(name) of \(number.value), \(mode)") {
        try vault.setExtendedAttribute(name, of: number, to: value, mode: mode)
        return .done
      } model: { _ in
        try model.setExtended(name, of: number, to: value, mode)
        return .done
      }
    case 3:
      try same("removing attribute \(name) of \(number.value)") {
        try vault.removeExtendedAttribute(name, of: number)
        return .done
      } model: { _ in
        try model.removeExtended(name, of: number)
        return .done
      }
    default: break
    }
    try same("reading attribute \(name) of \(number.value)") {
      .bytes(try vault.extendedAttribute(name, of: number))
    } model: { _ in
      .bytes(try model.extended(name, of: number))
    }
    try same("listing attributes of \(number.value)") {
      .names(Set(try vault.extendedAttributeNames(of: number)))
    } model: { _ in
      .names(Set(try model.node(number).extended.keys))
    }
    try compare(number)
  }

  // MARK: Reading

  private func look() throws {
    let (name, folder, number) = (name(), folder(), node())
    try same("looking up \(name) in \(folder.value)") {
      .attributes(try vault.lookup(name, in: folder))
    } model: { _ in
      .attributes(try model.lookup(name, in: folder))
    }
    try same("reading link \(number.value)") {
      .bytes(try vault.readLink(number))
    } model: { _ in
      .bytes(try model.readLink(number))
    }
  }

  private func resolve() throws {
    let path = path()
    let follows = !chance(3)
    try same("resolving \(path), following \(follows)") {
      .attributes(try vault.attributes(at: vaultPath(path), followingLinks: follows))
    } model: { _ in
      .attributes(try model.resolve(path, followingLinks: follows).attributes)
    }
  }

  private func snapshot() throws {
    if !snapshots.isEmpty, chance(2) {
      let position = Int.random(in: snapshots.indices, using: &generator)
      try compareSnapshot(position)
      let number = snapshots[position].node.number
      dropSnapshot(position)
      return try compare(number)
    }
    let path = path()
    guard let node = try? model.resolve(path), node.kind == .file else { return }
    snapshots.append((try vault.snapshot(of: vaultPath(path)), node))
    node.holders += 1
  }

  private func holdOrLetGo() throws {
    let numbers = held.numbers.withLock { $0.sorted { $0.value < $1.value } }
    if chance(3), let number = numbers.randomElement(using: &generator) {
      letGo(of: number)
      return try compare(number)
    }
    // One without a name, too: somebody has it open.
    if let node = model.nodes[node()], node !== model.root { beginHolding(node) }
  }

  /// What is there from beginning to end is given once.
  private func readWhileChanging() throws {
    let folder = folder()
    guard let node = model.nodes[folder], node.kind == .directory, node.linkCount > 0 else { return }
    var lasting = Set(node.names.keys)
    var given: [[UInt8]: Int] = [:]
    var cookie: UInt64?
    while node.linkCount > 0 {
      let limit = Int.random(in: 1...3, using: &generator)
      let portion = try vault.readFolder(folder, after: cookie, limit: limit, withAttributes: chance(2))
      guard let last = portion.last else { break }
      cookie = last.cookie
      for entry in portion { given[entry.name, default: 0] += 1 }
      for _ in 0..<2 {
        if chance(2) { try make() } else if chance(2) { try unlink() } else { try rename() }
        lasting.formIntersection(node.names.keys)
      }
    }
    if node.linkCount == 0 { return }
    guard lasting.allSatisfy({ given[$0] == 1 }) else {
      throw Difference(description: "reading folder \(folder.value) in portions")
    }
  }
}
