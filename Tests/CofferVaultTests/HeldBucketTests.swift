import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import GRDB
import Testing

@testable import CofferVault

/// Buckets that a small commit leaves in the root.
@Suite struct HeldBucketTests {
  @Test func `a root with buckets is read as it was written, and no other order or number of them`() throws {
    var generator = SeededGenerator(seed: 5)
    var root = RootRecord(branch: Randomness.bytes(RootRecord.branchByteCount))
    var buckets: [Int: Bucket] = [:]
    while buckets.count < RootRecord.bucketLimit {
      buckets[.random(in: 0..<VaultFormat.bucketCount, using: &generator)] = Bucket(
        sum: .random(in: 0 ... .max, using: &generator), count: .random(in: 0 ... .max, using: &generator))
    }
    root.hold(buckets)
    let bytes = root.encoded()
    #expect(try RootRecord(decoding: bytes) == root)

    let size = 2 + Bucket.byteCount
    let start = bytes.count - buckets.count * size
    var swapped = bytes
    swapped.replaceSubrange(start..<start + size, with: bytes[start + size..<start + 2 * size])
    swapped.replaceSubrange(start + size..<start + 2 * size, with: bytes[start..<start + size])
    #expect(throws: MalformedBytes.self) { try RootRecord(decoding: swapped) }
    var repeated = bytes
    repeated.replaceSubrange(start..<start + size, with: bytes[start + size..<start + 2 * size])
    #expect(throws: MalformedBytes.self) { try RootRecord(decoding: repeated) }
    var foreign = bytes
    foreign.replaceSubrange(bytes.count - size..<bytes.count - size + 2, with: [0xff, 0xff])
    #expect(throws: MalformedBytes.self) { try RootRecord(decoding: foreign) }
    var padded = RootRecord(branch: root.branch).encoded()
    #expect(padded.count == bytes.count)
    padded[padded.count - 1] = 1
    #expect(throws: MalformedBytes.self) { try RootRecord(decoding: padded) }
    var many = bytes
    many[start - 1] = UInt8(RootRecord.bucketLimit + 1)
    many += [UInt8](repeating: 0xff, count: size)
    #expect(throws: MalformedBytes.self) { try RootRecord(decoding: many) }
  }

  /// Commits of any size, in several openings: whatever stands in the root or in pages, every row is found and counted.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `commits small and large leave every bucket right`(_ seed: UInt64) throws {
    let fixture = try VaultFixture()
    var generator = SeededGenerator(seed: seed)
    var vault = try fixture.create()
    var names: Set<Int> = []
    var pages = Self.pageTags(vault)
    var sawUnchanged = false
    var sawChanged = false
    for step in 0..<24 {
      // Each folder is a bucket of its own, and one name is three at most: the name's, the folder's and the file's.
      let count = step % 3 == 2 ? 40 : 1
      for _ in 0..<count {
        let name = Int.random(in: 0..<200, using: &generator)
        if names.insert(name).inserted {
          try vault.makeDirectory(at: VaultPath("\(name)"))
          try vault.importFile(fixture.source([UInt8(name)]), to: VaultPath("\(name)/file"))
        } else {
          try vault.removeRecursively(VaultPath("\(name)"))
          names.remove(name)
        }
      }
      try vault.commit()
      let now = Self.pageTags(vault)
      if now == pages { sawUnchanged = true } else { sawChanged = true }
      pages = now
      if Int.random(in: 0..<3, using: &generator) == 0 {
        try vault.close()
        vault = try fixture.open()
      }
      let report = try vault.verify(isDeep: true)
      #expect(report.isClean && report.strayRecordCount == 0, "step \(step)")
      let listed = try vault.list(.root).map { String(decoding: $0.name, as: UTF8.self) }
      #expect(Set(listed) == Set(names.map { "\($0)" }))
    }
    #expect(sawUnchanged, "a small commit seals no page")
    #expect(sawChanged, "a large one does")
    try vault.close()
  }

  /// What is damaged elsewhere costs no commit, and nothing that has waited for it.
  @Test func `a page that is damaged under buckets of the root keeps nobody from a commit`() throws {
    let fixture = try VaultFixture()
    var vault = try fixture.create()
    var made: Set<String> = []
    func make(_ name: String) throws {
      try vault.makeDirectory(at: VaultPath(name))
      made.insert(name)
    }
    for number in 0..<40 { try make("first-\(number)") }
    try vault.commit()
    try make("held")
    try vault.close()
    vault = try fixture.open()
    let held = vault.index.read { Set($0.storedRoot.buckets.keys.map { $0 / VaultFormat.bucketsPerPage }) }
    try #require(!held.isEmpty)
    try vault.close()
    let index = try RawIndex(fixture.vaultPath)
    for page in held { try index.update(.bucket, Int64(page).databaseValue, to: Data(count: 100)) }
    try index.close()

    vault = try fixture.open()
    try make("small")
    try vault.commit()
    // More buckets than a root holds, for each folder has one. Those that lie in the damaged pages refuse, each for itself.
    let pages = Self.pageTags(vault)
    var touched: Set<InodeNumber> = []
    for number in 0..<2 * RootRecord.bucketLimit {
      guard (try? make("second-\(number)")) != nil else { continue }
      if (try? vault.makeDirectory(at: VaultPath("second-\(number)/inner"))) != nil {
        touched.insert(try vault.attributes(at: VaultPath("second-\(number)")).number)
      }
    }
    #expect(made.count > 80)
    try vault.commit()
    #expect(touched.count > RootRecord.bucketLimit && Self.pageTags(vault) != pages, "so they went into pages")
    try vault.close()
    vault = try fixture.open()
    #expect(Set(try vault.list(.root).map { String(decoding: $0.name, as: UTF8.self) }) == made)
    try vault.close()
  }

  private static func pageTags(_ vault: Vault) -> [[UInt8]?] {
    vault.index.read { session in (0..<RootRecord.pageCount).map { session.storedRoot.pageTag($0) } }
  }
}
