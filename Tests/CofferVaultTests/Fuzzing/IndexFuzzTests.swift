import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

/// Pages of `index.sqlite` that nobody wrote, or that stood there once: what is read is right, or refused.
@Suite struct IndexFuzzTests {
  private static let pageSize = 8192

  @Test(arguments: [false, true])
  func `a changed page gives nothing false`(holdsBuckets: Bool) throws {
    let vault = try TamperedVault(seed: 4, holdsBuckets: holdsBuckets)
    let now = try Data(contentsOf: URL(filePath: vault.folder("now/vault/index.sqlite")))
    let old = try Data(contentsOf: URL(filePath: vault.folder("old/vault/index.sqlite")))
    var refused = 0
    var whole = 0
    let disk = vault.folder("disk")
    try Effort.rounds(75) { seed in
      var generator = SeededGenerator(seed: seed)
      let bytes = Self.mutate(now, old, &generator)
      if try FileSystem().status(of: disk) != nil { try FileManager.default.removeItem(atPath: disk) }
      try FileManager.default.copyItem(atPath: vault.folder("now"), toPath: disk)
      let file = try FileSystem().open(disk + "/vault/index.sqlite", [.writeOnly, .truncate])
      try file.writeAll(Array(bytes))
      if try read(vault, disk, seed) { whole += 1 } else { refused += 1 }
    }
    #expect(refused > 0)
    print("changed pages: \(refused) refused, \(whole) whole")
  }

  /// Some bytes, a whole page, a page of an older version, or the places of cells in a page.
  private static func mutate(_ now: Data, _ old: Data, _ generator: inout SeededGenerator) -> Data {
    var bytes = now
    let pageCount = bytes.count / pageSize
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      let page = Int.random(in: 0..<pageCount, using: &generator) * pageSize
      switch Int.random(in: 0..<6, using: &generator) {
      case 0:
        let place = page + Int.random(in: 0..<pageSize, using: &generator)
        bytes[place] = UInt8.random(in: 0...255, using: &generator)
      case 1:
        bytes[page + Int.random(in: 0..<100, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 2: bytes.resetBytes(in: page..<(page + pageSize))
      case 3:
        let other = Int.random(in: 0..<pageCount, using: &generator) * pageSize
        let (one, two) = (bytes[page..<(page + pageSize)], bytes[other..<(other + pageSize)])
        bytes.replaceSubrange(page..<(page + pageSize), with: two)
        bytes.replaceSubrange(other..<(other + pageSize), with: one)
      case 4:
        if old.count >= page + pageSize {
          bytes.replaceSubrange(page..<(page + pageSize), with: old[page..<(page + pageSize)])
        }
      default:
        // Cell pointers, behind the page's header of 8 or 12 bytes (SQLite file format, section 1.6).
        let (left, right) = (
          8 + 2 * Int.random(in: 0..<12, using: &generator), 8 + 2 * Int.random(in: 0..<12, using: &generator)
        )
        for byte in 0..<2 { bytes.swapAt(page + left + byte, page + right + byte) }
      }
    }
    return bytes
  }

  /// Whether everything was read. What is read must be right, and stays so when the user goes on writing.
  private func read(_ vault: TamperedVault, _ disk: String, _ seed: UInt64) throws -> Bool {
    var isWhole = true
    for round in 0..<2 {
      do {
        let opened = try vault.opener.open(disk)
        defer { try? opened.close() }
        for (path, node) in vault.expected.nodes {
          guard case .file(let bytes, _, _) = node else { continue }
          do {
            let found = try opened.wholeContents(of: VaultPath(path))
            #expect(found == bytes, "seed \(seed), round \(round): \(path) is another's, or an older one")
          } catch let error as VaultError {
            // A name that is there must not be denied.
            #expect(error != .notFound, "seed \(seed), round \(round): \(path) is gone")
            isWhole = false
          }
        }
        var held = HeldFiles()
        let change = VaultChange.put(path: "docs/added", bytes: [1, 2, 3], permissions: 0o600)
        try change.apply(to: opened, holding: &held, scratch: vault.folder("scratch"))
        try opened.commit()
      } catch is VaultError {
        isWhole = false
      }
    }
    return isWhole
  }
}
