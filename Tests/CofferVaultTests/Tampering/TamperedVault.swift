import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import GRDB

@testable import CofferVault

/// A vault at rest with a past, and all that is needed to change any stored part of it: `old` is an earlier copy of it,
/// `now` the newest, and `crashed` the newest as a crash left it while a removed file was being read.
///
/// It has a target of every kind, a partner of the same kind, and files that have nothing to do with either.
struct TamperedVault {
  let folder: MemoryFolder
  let opener: CrashedVault
  private(set) var expected = ExpectedVault()
  /// Rows that each file needs, by its path.
  private(set) var rows: [String: [RowReference]] = [:]
  /// Rows of each kind that were changed since `old`: the one to attack, and one to swap it with.
  private(set) var targets: [RecordKind: [RowReference]] = [:]
  /// Names of the objects of the target and its partner, below `objects/`.
  private(set) var objects: [String] = []
  private(set) var id = VaultID()

  /// A row, and the bucket that counts it.
  struct RowReference: Hashable {
    let table: RawIndex.Table
    let key: DatabaseValue
    let bucket: Int

    init(_ kind: RecordKind, _ key: RowKey) {
      table = kind.table == .entry ? .entry : .record
      self.key = Data(key.bytes).databaseValue
      bucket = key.bucket
    }

    init(_ table: RawIndex.Table, id: Int64) {
      self.table = table
      key = id.databaseValue
      bucket = -1
    }
  }

  /// Files with so large holes that their maps have directories; beside what is expected.
  static let sparse = ["sparse", "sparse too"]

  /// - Parameter holdsBuckets: the root may hold some, as it does outside tests; else all stand in pages.
  init(seed: UInt64, holdsBuckets: Bool) throws {
    folder = try MemoryFolder()
    let derivation = try TestVault.derivation()
    opener = CrashedVault(key: try derivation.key(for: TestVault.passcode))
    let disk = folder("disk")
    try FileSystem().makeDirectory(disk)
    var generator = SeededGenerator(seed: seed)
    let vault = try Vault.create(
      at: disk + "/vault", keyStore: FileKeyStore(path: disk + "/keys"), passcode: TestVault.passcode,
      derivation: derivation, options: TestVault.options)
    if !holdsBuckets { vault.index.read { $0.heldBucketLimit = 0 } }
    id = vault.id
    try FileKeyStore(path: disk + "/keys").write(TestVault.passcode, as: .enrolment, of: id)
    var held = HeldFiles()
    func apply(_ changes: [VaultChange]) throws {
      for change in changes {
        try change.apply(to: vault, holding: &held, scratch: folder("scratch"))
        change.apply(to: &expected)
      }
      try vault.commit()
    }
    func put(_ path: String, _ count: Int) -> VaultChange {
      .put(path: path, bytes: generator.bytes(count), permissions: 0o640)
    }
    /// Inodes with near numbers are neighbours in the index; these shall not be.
    func goFar() throws {
      for _ in 0..<64 {
        try vault.makeDirectory(at: VaultPath("x"))
        try vault.remove(VaultPath("x"))
      }
    }
    // The rest, which nothing below touches.
    try goFar()
    try apply([.makeFolder(path: "rest"), put("rest/small", 100), put("rest/large", 20_000)])
    try goFar()
    try apply([
      .makeFolder(path: "docs"), put("docs/target", 10_000), put("docs/partner", 20_000), put("docs/small", 50),
      .setAttribute(path: "docs/target", name: "user.one", to: [1]),
      .setAttribute(path: "docs/partner", name: "user.one", to: [2]),
      put("docs/second", 60), .set(setting: "one", to: [1]), .set(setting: "two", to: [2]),
    ])
    for path in Self.sparse { try VaultChange.write(path, at: 1, making: true, in: vault) }
    try vault.close()
    try FileManager.default.copyItem(atPath: disk, toPath: folder("old"))

    let again = try opener.open(disk)
    if !holdsBuckets { again.index.read { $0.heldBucketLimit = 0 } }
    func reapply(_ changes: [VaultChange]) throws {
      for change in changes {
        try change.apply(to: again, holding: &held, scratch: folder("scratch"))
        change.apply(to: &expected)
      }
      try again.commit()
    }
    // A new name changes the inode; a new content changes the entry.
    try reapply([
      .rename(path: "docs/target", to: "docs/moved"), .rename(path: "docs/moved", to: "docs/target"),
      .setAttribute(path: "docs/target", name: "user.one", to: [3]), put("docs/small", 55), put("docs/second", 65),
      .set(setting: "one", to: [3]), .set(setting: "two", to: [4]),
      .write(path: "docs/target", offset: 5000, bytes: [1, 2, 3]), .write(path: "docs/partner", offset: 9, bytes: [4]),
      put("docs/gone", 9000), put("docs/gone too", 9000),
    ])
    for path in Self.sparse { try VaultChange.write(path, at: 2, making: false, in: again) }
    try again.commit()
    try collect(again)
    try reapply([
      .hold(path: "docs/gone"), .hold(path: "docs/gone too"), .remove(path: "docs/gone"),
      .remove(path: "docs/gone too"),
    ])
    try mark(again) { try $0.addDeposit($1) }
    try FileManager.default.copyItem(atPath: disk, toPath: folder("crashed"))
    try mark(again) { try $0.removeDeposit($1) }
    held = HeldFiles()
    try again.close()
    try FileManager.default.moveItem(atPath: disk, toPath: folder("now"))
  }

  /// Marks of what was stored while the vault was locked: here on files that were not, so that they change nothing else.
  private func mark(_ vault: Vault, _ body: (IndexSession, InodeNumber) throws -> Void) throws {
    try vault.change { session in
      for name in ["target", "partner"] { try body(session, session.resolve(VaultPath("docs/" + name)).number) }
    }
    try vault.commit()
  }

  /// Learns where everything lies.
  private mutating func collect(_ vault: Vault) throws {
    for path in expected.nodes.keys {
      rows[path] = try vault.look { session in
        var rows: [RowReference] = []
        var parent = InodeNumber.rootFolder
        let names = try VaultPath(path).names
        rows.append(RowReference(.inode, session.rowKeys.inode(parent)))
        for name in names {
          rows.append(RowReference(.entry, session.rowKeys.entry(parent: parent, name: name)))
          guard let entry = try session.entry(name, in: parent) else { throw VaultError.notFound }
          rows.append(RowReference(.inode, session.rowKeys.inode(entry.inode)))
          parent = entry.inode
        }
        switch try session.inode(parent).content {
        case .object:
          rows.append(RowReference(.map, session.rowKeys.mapPage(parent, 0)))
          if case .file(_, _, let attributes) = expected.nodes[path], let name = attributes.keys.first {
            rows.append(RowReference(.attribute, session.rowKeys.attribute(parent, name: Array(name.utf8))))
          }
        case .directory:
          // To list it, its names.
          rows.append(RowReference(.entry, RowKey(high: session.rowKeys.entryPrefix(parent: parent).high, low: 0)))
        default: break
        }
        return rows
      }
    }
    try vault.look { session in
      let docs = try session.resolve(VaultPath("docs")).number
      func inode(_ name: String) throws -> InodeNumber { try session.resolve(VaultPath("docs/" + name)).number }
      var keys = session.rowKeys
      for kind in RecordKind.allCases {
        targets[kind] =
          switch kind {
          case .entry: ["small", "second"].map { .init(kind, keys.entry(parent: docs, name: Array($0.utf8))) }
          case .inode: try ["target", "partner"].map { .init(kind, keys.inode(try inode($0))) }
          case .map: try ["target", "partner"].map { .init(kind, keys.mapPage(try inode($0), 0)) }
          case .setting: ["one", "two"].map { .init(kind, keys.setting($0)) }
          case .pending: try ["gone", "gone too"].map { .init(kind, keys.pending(try inode($0))) }
          case .deposit: try ["target", "partner"].map { .init(kind, keys.deposit(try inode($0))) }
          case .bucket:
            [keys.entryPrefix(parent: docs).high, keys.settingPrefix.high].map {
              .init(.bucket, id: Int64(RowKey.bucket(of: $0) / VaultFormat.bucketsPerPage))
            }
          case .root: [.init(.root, id: 1)]
          case .attribute:
            try ["target", "partner"].map { .init(kind, keys.attribute(try inode($0), name: Array("user.one".utf8))) }
          case .mapDirectory:
            try Self.sparse.map { .init(kind, keys.mapDirectory(try session.resolve(VaultPath($0)).number, 0)) }
          }
      }
      objects = try ["target", "partner"].compactMap { name in
        guard case .object(let object, _) = try session.inode(inode(name)).content else { return nil }
        let place = session.rowKeys.objectPlace(object.number)
        return place.folder + "/" + place.name
      }
    }
  }

  /// Where a part's file lies, below a copy of the vault.
  func file(_ part: StoredPart) -> String? {
    switch part {
    case .record, .salt: nil
    case .description: "vault/" + VaultFormat.description
    case .keybag: "vault/" + VaultFormat.keybag
    case .object: "vault/objects/" + objects[0]
    case .indexFile: "vault/" + VaultFormat.index
    case .item(let item): "keys/\(id)/\(item.rawValue)"
    }
  }

  /// The file that a part's file is swapped with.
  func partner(_ part: StoredPart) -> String? {
    switch part {
    case .record, .salt: nil
    case .description: file(.keybag)
    case .keybag: file(.description)
    case .object: "vault/objects/" + objects[1]
    case .indexFile: nil
    case .item(.deviceSecret): file(.item(.anchor))
    case .item: file(.item(.deviceSecret))
    }
  }
}

extension TamperedVault {
  /// A vault of which no two groups of rows share a page of buckets by chance: which files depend on which row is then
  /// the same in every run.
  static func generic(holdsBuckets: Bool) throws -> TamperedVault {
    while true {
      let vault = try TamperedVault(seed: 1, holdsBuckets: holdsBuckets)
      if try vault.isGeneric() { return vault }
    }
  }

  private func isGeneric() throws -> Bool {
    let opened = try opener.open(folder("now"))
    defer { try? opened.close() }
    let keys = try opened.look { $0.rowKeys }
    let known = (Array(rows.values) + Array(targets.values)).joined()
    var highs = Set(known.compactMap { Data.fromDatabaseValue($0.key)?.prefix(8) })
    for prefix in [keys.settingPrefix, keys.pendingPrefix, keys.depositPrefix] {
      highs.insert(Data(prefix.high.bigEndianBytes))
    }
    return Set(highs.map { $0[$0.startIndex] }).count == highs.count
  }

  /// The rows that reading `path` needs; those of a folder's files too, because listing tells of them.
  func rows(of path: String) -> [RowReference] {
    rows.filter { $0.key == path || $0.key.hasPrefix(path + "/") }.flatMap(\.value)
  }
}

extension VaultChange {
  /// Where a sparse file has its data: far enough that a directory must tell of it.
  static func place(_ number: Int) -> UInt64 { UInt64(number) << 30 }

  fileprivate static func write(_ path: String, at number: Int, making: Bool, in vault: Vault) throws {
    let file =
      making
      ? try vault.createFile(at: VaultPath(path), permissions: 0o600, exclusive: true)
      : try vault.open(VaultPath(path), .writing)
    try [UInt8](repeating: UInt8(number), count: 100).withUnsafeBytes { raw in
      Result { try file.write(raw, at: place(number)) }
    }.get()
    try file.close()
  }
}
