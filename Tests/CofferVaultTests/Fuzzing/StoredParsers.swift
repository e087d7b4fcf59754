import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation

@testable import CofferVault

/// Everything that reads stored bytes, with bytes that a real vault holds.
struct StoredParser {
  let name: String
  let seeds: [[UInt8]]
  /// Parses, uses what was parsed as the vault does, and writes it again.
  let rewrite: ([UInt8]) throws -> [UInt8]

  /// One for each kind of record, the headers, and what the key store holds.
  static func all() throws -> [StoredParser] {
    let vault = try TamperedVault(seed: 3, holdsBuckets: false)
    let crashed = vault.folder("crashed")
    var parsers = try headers(crashed, vault.id)
    // Read with the marks that the crash left; an opened vault would have done them.
    let records = try vault.plaintexts()
    for kind in RecordKind.allCases {
      let seeds = records[kind] ?? []
      guard let rewrite = rewriting(kind) else { continue }
      parsers += seeds.map { seed in
        StoredParser(name: "\(kind)", seeds: [seed.bytes] + seeds.map(\.bytes)) { try rewrite($0, seed) }
      }.prefix(2)
    }
    parsers.append(
      StoredParser(name: "padding", seeds: [Padding.pad([1, 2, 3])]) { Padding.pad(try Padding.unpad($0)) })
    parsers.append(
      StoredParser(name: "journal entry", seeds: journalEntries) {
        let entry = try JournalEntry(decoding: $0)
        for count in [0, RootRecord.bucketLimit] {
          var root = RootRecord(branch: [UInt8](repeating: 4, count: RootRecord.branchByteCount))
          root.hold(Dictionary(uniqueKeysWithValues: (0..<count).map { ($0, Bucket()) }))
          try? root.apply(entry.root, pages: entry.pages)
        }
        return entry.encoded()
      })
    return parsers
  }

  private static var journalEntries: [[UInt8]] {
    let rows = [(RecordKind.entry, 100), (.inode, 0), (.map, 300)].enumerated().map { number, row in
      RowChange(
        id: RowID(kind: row.0, key: RowKey(high: UInt64(number) << 40, low: 7)), isStored: row.1 == 0,
        value: [UInt8](repeating: 1, count: row.1))
    }
    let root = RootRecord(branch: [UInt8](repeating: 3, count: RootRecord.branchByteCount))
    let buckets = [5: Bucket(sum: .init(repeating: 4), count: 2), VaultFormat.bucketCount - 1: Bucket()]
    return [0, 1, 3].map { count in
      JournalEntry(
        changes: Array(rows[..<count]), pages: count == 3 ? [(255, [UInt8](repeating: 2, count: 60))] : [],
        root: RootChange(root, buckets: count == 0 ? [:] : buckets)
      ).encoded()
    }
  }

  /// A record as a vault holds it, and what it belongs to.
  struct Seed {
    let bytes: [UInt8]
    let inode: InodeNumber
  }

  /// A kind without a line here does not compile.
  private static func rewriting(_ kind: RecordKind) -> (([UInt8], Seed) throws -> [UInt8])? {
    switch kind {
    case .entry: { Entry.encode(try Entry.decode($0, parent: $1.inode), parent: $1.inode) }
    case .inode:
      {
        let inode = try Inode(decoding: $0, expecting: $1.inode)
        _ = FileAttributes(inode)
        _ = PendingRemoval(ListedNode(inode))
        return inode.encoded()
      }
    case .map: { try MapPage(decoding: $0, inode: $1.inode, index: 0).encoded() }
    case .setting:
      { bytes, _ in
        let (name, value) = try Vault.decode(bytes)
        var writer = ByteWriter()
        writer.write(counted: Array(name.utf8))
        writer.write(counted: value)
        return Padding.pad(writer.bytes)
      }
    case .pending: { bytes, _ in try PendingRemoval(decoding: bytes).encoded() }
    case .deposit: { bytes, _ in Padding.pad(try InodeNumber(deposit: bytes).value.bigEndianBytes) }
    case .bucket: { bytes, _ in Bucket.encode(try Bucket.decodePage(bytes)) }
    case .root: { bytes, _ in try RootRecord(decoding: bytes).encoded() }
    case .attribute: { ExtendedAttribute.encode(try ExtendedAttribute.decode($0, of: $1.inode), of: $1.inode) }
    case .mapDirectory: { try MapDirectory(decoding: $0, inode: $1.inode, index: 0).encoded(inode: $1.inode, index: 0) }
    }
  }

  private static func headers(_ folder: String, _ id: VaultID) throws -> [StoredParser] {
    func bytes(_ path: String) throws -> [UInt8] {
      try FileSystem().open(folder + "/" + path, .readOnly).contents(limit: 1 << 16)
    }
    var keybag = try Keybag(parsing: bytes("vault/keybag.json"))
    let master = SecretKey()
    try keybag.setRecoveryKey(RecoveryKey(), master: master, vault: id)
    try keybag.setEscrowKey(HybridKey().publicKey, master: master, vault: id)
    let secret = try FileKeyStore(path: folder + "/keys").read(.deviceSecret, of: id)
    let attemptsKey = try DeviceKeys(secret: secret ?? SecretKey().secretBytes, vault: id).attempts
    var attempts = AttemptRecord()
    attempts.failureCount = 3
    attempts.remember([UInt8](repeating: 5, count: 32))
    return [
      StoredParser(name: "rotation", seeds: [try bytes("keys/\(id)/rotation")]) {
        try RotationRecord(decoding: SecretBytes(copying: $0)).encoded().withUnsafeBytes { Array($0) }
      },
      // Behind its code, which a change breaks: with one that fits.
      StoredParser(
        name: "attempts", seeds: [attempts.encoded(key: attemptsKey), try bytes("keys/\(id)/attempts")]
      ) {
        let body = Array($0.dropLast(32))
        let code = MessageAuthentication.code(for: body, key: attemptsKey)
        return try AttemptRecord(decoding: body + code, key: attemptsKey).encoded(key: attemptsKey)
      },
      StoredParser(name: "coffer.json", seeds: [try bytes("vault/coffer.json")]) {
        try VaultDescription(parsing: $0).bytes
      },
      StoredParser(name: "keybag.json", seeds: [try keybag.encoded(), try bytes("vault/keybag.json")]) {
        try Keybag(parsing: $0).encoded()
      },
      StoredParser(name: "escrow", seeds: [try escrow(keybag, master, id), EscrowRecord().encoded]) {
        try EscrowRecord(decoding: $0).encoded
      },
      StoredParser(name: "anchor", seeds: [try bytes("keys/\(id)/anchor")]) { try Anchor(decoding: $0).encoded() },
    ]
  }
}

extension StoredParser {
  /// With all that a record can have.
  private static func escrow(_ keybag: Keybag, _ master: SecretKey, _ id: VaultID) throws -> [UInt8] {
    var record = EscrowRecord()
    record.uses = [
      EscrowUse(means: .escrowKey, time: 1), EscrowUse(means: .clearing, time: 2),
      EscrowUse(means: .cleared, time: 3),
    ]
    try record.renew(for: keybag, keybag.encoded(), master: master, context: [1, 2, 3], vault: id)
    record.exchange?.taken = [[UInt8](repeating: 6, count: 32)]
    try record.renew(for: keybag, keybag.encoded(), master: master, context: [1, 2, 3], vault: id)
    record.exchange?.taken = [[UInt8](repeating: 7, count: 32)]
    record.exchange?.pending = .init(
      wrapped: try master.wrapped(under: SecretKey()),
      moment: BootMoment(boot: [UInt8](repeating: 1, count: 16), seconds: 5), time: 6)
    return record.encoded
  }
}

extension TamperedVault {
  /// The opened targets of every kind.
  fileprivate func plaintexts() throws -> [RecordKind: [StoredParser.Seed]] {
    let vault = try opener.open(folder("now"))
    defer { try? vault.close() }
    var result: [RecordKind: [StoredParser.Seed]] = [:]
    try vault.look { session in
      let docs = try session.resolve(VaultPath("docs")).number
      let files = try ["target", "partner", "small"].map { try session.resolve(VaultPath("docs/" + $0)).number }
      func add(_ kind: RecordKind, _ key: RowKey, _ inode: InodeNumber) throws {
        if let bytes = try session.value(kind, key) {
          result[kind, default: []].append(.init(bytes: bytes, inode: inode))
        }
      }
      var keys = session.rowKeys
      for name in ["target", "small"] { try add(.entry, keys.entry(parent: docs, name: Array(name.utf8)), docs) }
      for file in files + [docs] { try add(.inode, keys.inode(file), file) }
      for file in files.prefix(2) { try add(.map, keys.mapPage(file, 0), file) }
      for path in Self.sparse {
        let file = try session.resolve(VaultPath(path)).number
        try add(.mapDirectory, keys.mapDirectory(file, 0), file)
      }
      for name in ["one", "two"] { try add(.setting, keys.setting(name), docs) }
      let object = ObjectReference(number: 3, blockSizeExponent: 12)
      let removal = PendingRemoval(inode: files[0], object: object)
      result[.pending] = [.init(bytes: removal.encoded(), inode: files[0])]
      result[.deposit] = [.init(bytes: Padding.pad(files[0].value.bigEndianBytes), inode: files[0])]
      let buckets = (0..<VaultFormat.bucketsPerPage).map {
        Bucket(sum: .init(repeating: UInt64($0)), count: UInt32($0))
      }
      result[.bucket] = [.init(bytes: Bucket.encode(buckets), inode: docs)]
      result[.root] = [.init(bytes: session.root.encoded(), inode: docs)]
      let attribute = ExtendedAttribute(name: Array("user.name".utf8), value: [1, 2, 3])
      result[.attribute] = [.init(bytes: ExtendedAttribute.encode([attribute], of: docs), inode: docs)]
    }
    return result
  }
}
