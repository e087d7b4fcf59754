import CofferFiles
import CofferSystem
import CofferTestSupport
import Synchronization
import Testing

@testable import CofferVault

/// A vault and a model of it, on which the same random operations are done.
final class ModelRun {
  let fixture: VaultFixture
  let clock = TestClock()
  private(set) var vault: Vault
  var model: NamespaceModel
  var generator = SeededGenerator(seed: 0)
  /// The names' hash, where it is shortened so that names share rows.
  private let nameMask: UInt64?
  /// Where the present seed works: a folder of its own.
  private(set) var base: [UInt8] = []
  var snapshots: [(snapshot: FileSnapshot, node: NamespaceModel.Node)] = []
  /// What somebody holds who does not use it.
  let held = HeldNumbers()
  private(set) var hold: NodeHold
  /// Whether the vault forgets before each operation what it has read.
  var forgets = false
  /// Numbers that lead nowhere any more.
  var dead: [InodeNumber] = [InodeNumber(value: 0), InodeNumber(value: 1 << 60)]

  /// What an operation gave.
  enum Outcome: Equatable {
    case done
    case attributes(FileAttributes)
    case bytes([UInt8])
    case names(Set<[UInt8]>)
    case failed(VaultError)

    init(_ body: () throws -> Outcome) throws {
      do {
        self = try body()
      } catch let error as VaultError {
        self = .failed(error)
      } catch let error as InvalidName {
        self = .failed(.invalidName(error))
      }
    }

    var number: InodeNumber {
      if case .attributes(let attributes) = self { attributes.number } else { InodeNumber(value: .max) }
    }
  }

  final class HeldNumbers: Sendable {
    let numbers = Mutex<Set<InodeNumber>>([])
  }

  struct Difference: Error, CustomStringConvertible {
    let description: String
  }

  init(nameMask: UInt64?) throws {
    fixture = try VaultFixture()
    self.nameMask = nameMask
    vault = try fixture.create(time: clock)
    hold = vault.hold { [held] number in held.numbers.withLock { $0.contains(number) } }
    model = NamespaceModel(root: try vault.attributes(of: .rootFolder), at: clock.now())
    if let nameMask { vault.index.read { $0.rowKeys.nameMask = nameMask } }
  }

  func reopen() throws {
    while !snapshots.isEmpty { dropSnapshot(0) }
    for number in held.numbers.withLock(\.self) { letGo(of: number) }
    hold.letGoOfAll()
    try vault.close()
    vault = try fixture.open(time: clock)
    hold = vault.hold { [held] number in held.numbers.withLock { $0.contains(number) } }
    if let nameMask { vault.index.read { $0.rowKeys.nameMask = nameMask } }
  }

  /// Throws a ``Difference`` where vault and model do not agree.
  func run(seed: Int, steps: Int) throws {
    generator = SeededGenerator(seed: UInt64(seed))
    base = Array("seed \(seed)".utf8)
    try same("making the seed's folder") {
      .attributes(try vault.makeFolder(base, in: .rootFolder, NewNode(permissions: 0o755)))
    } model: { number in
      .attributes(try model.make(.directory, base, in: .rootFolder, NewNode(permissions: 0o755), number: number))
    }
    for _ in 0..<steps { try step() }
    if Int.random(in: 0..<100, using: &generator) == 0 { try reopen() }
    try compareAll()
    try same("removing the seed's folder") {
      try vault.removeRecursively(VaultPath.root.appending(base))
      return .done
    } model: { _ in
      try model.removeRecursively([base])
      return .done
    }
    while !snapshots.isEmpty {
      try compareSnapshot(0)
      dropSnapshot(0)
    }
    for number in held.numbers.withLock(\.self) { letGo(of: number) }
    for number in dead.suffix(20) { try compareNothing(number) }
    try compareAll()
  }

  func close() throws { try vault.close() }

  /// Does the same on both and compares what it gave. The model is told the number that the vault drew.
  @discardableResult
  func same(
    _ what: @autoclosure () -> String, _ real: () throws -> Outcome, model: (InodeNumber) throws -> Outcome
  ) throws -> Outcome {
    clock.advance()
    if forgets { try vault.index.forgetOpened() }
    self.model.now = clock.now()
    let before = self.model.nodes
    let found = try Outcome(real).comparable
    let expected = try Outcome { try model(found.number) }
    guard found == expected else {
      throw Difference(description: "\(what()): the vault gives \(found), the model \(expected)")
    }
    dead += before.keys.filter { self.model.nodes[$0] == nil }
    return found
  }

  // MARK: Comparing

  func compare(_ number: InodeNumber) throws {
    let found = try Outcome { .attributes(try vault.attributes(of: number)) }.comparable
    let expected = try Outcome { .attributes(try model.node(number).attributes) }
    guard found == expected else {
      throw Difference(description: "inode \(number.value) is \(found), should be \(expected)")
    }
  }

  /// A number that leads nowhere has left no record.
  private func compareNothing(_ number: InodeNumber) throws {
    let isGone = try vault.index.read { session in
      let attributes = session.rowKeys.attributePrefix(number)
      let names = session.rowKeys.entryPrefix(parent: number)
      return try session.inodeIfPresent(number) == nil
        && session.rows(.attribute, prefix: attributes, after: nil, limit: 1).isEmpty
        && session.rows(.entry, prefix: names, after: nil, limit: 1).isEmpty
    }
    if !isGone { throw Difference(description: "inode \(number.value) has left something") }
  }

  /// Everything that the model has, and nothing else.
  func compareAll() throws {
    for (number, node) in model.nodes {
      try compare(number)
      let names = try vault.extendedAttributeNames(of: number)
      guard Set(names) == Set(node.extended.keys), names.count == node.extended.count else {
        throw Difference(description: "the extended attributes of inode \(number.value)")
      }
      for (name, value) in node.extended where try vault.extendedAttribute(name, of: number) != value {
        throw Difference(description: "an extended attribute of inode \(number.value)")
      }
      if node.kind == .symbolicLink, try vault.readLink(number) != node.target {
        throw Difference(description: "the target of inode \(number.value)")
      }
      if node.kind == .directory, node.linkCount > 0 { try compareFolder(node) }
    }
    for position in snapshots.indices { try compareSnapshot(position) }
    try compareContents(model.root, .root)
  }

  private func compareFolder(_ node: NamespaceModel.Node) throws {
    var found: [[UInt8]: InodeNumber] = [:]
    var cookie: UInt64?
    while true {
      let portion = try vault.readFolder(node.number, after: cookie, limit: 5, withAttributes: true)
      guard let last = portion.last else { break }
      for entry in portion {
        guard found.updateValue(entry.number, forKey: entry.name) == nil, entry.attributes?.kind == entry.kind,
          entry.attributes?.number == entry.number, cookie.map({ $0 < entry.cookie }) ?? true,
          entry.cookie >> 62 == 1
        else { throw Difference(description: "an entry of folder \(node.number.value)") }
        cookie = entry.cookie
      }
      cookie = last.cookie
    }
    guard found == node.names.mapValues(\.number) else {
      throw Difference(description: "the names of folder \(node.number.value)")
    }
    guard try vault.parent(of: node.number) == node.parent?.number else {
      throw Difference(description: "the parent of folder \(node.number.value)")
    }
  }

  private func compareContents(_ folder: NamespaceModel.Node, _ path: VaultPath) throws {
    for (name, node) in folder.names {
      let inner = try path.appending(name)
      if node.kind == .directory { try compareContents(node, inner) }
      if node.kind == .file, try vault.contents(of: inner) != node.content {
        throw Difference(description: "the content of inode \(node.number.value)")
      }
    }
  }

  // MARK: Snapshots

  func compareSnapshot(_ position: Int) throws {
    let (snapshot, node) = snapshots[position]
    var bytes = [UInt8](repeating: 0, count: node.content.count + 1)
    let count = try bytes.withUnsafeMutableBytes { try snapshot.read(at: 0, into: $0) }
    guard bytes.prefix(count).elementsEqual(node.content) else {
      throw Difference(description: "the snapshot of inode \(node.number.value)")
    }
  }

  func dropSnapshot(_ position: Int) { didLeave(snapshots.remove(at: position).node) }

  /// One holder less.
  private func didLeave(_ node: NamespaceModel.Node) {
    node.holders -= 1
    model.bury(node)
    if model.nodes[node.number] == nil { dead.append(node.number) }
  }

  // MARK: Holding

  /// Does nothing where it is held already.
  func beginHolding(_ node: NamespaceModel.Node) {
    if held.numbers.withLock({ $0.insert(node.number).inserted }) { node.holders += 1 }
  }

  func letGo(of number: InodeNumber) {
    held.numbers.withLock { _ = $0.remove(number) }
    hold.letGo(of: number)
    vault.removeLetGo()
    if let node = model.nodes[number] { didLeave(node) }
  }
}

extension ModelRun.Outcome {
  /// Without what the storing of content decides.
  fileprivate var comparable: Self {
    guard case .attributes(var attributes) = self else { return self }
    attributes.storedByteCount = 0
    attributes.revision = 0
    return .attributes(attributes)
  }
}
