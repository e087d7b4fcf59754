import CofferFiles
import CofferSystem
import CofferVault
import Testing

@Suite struct LargeFolderTests {
  private func name(_ position: Int) -> [UInt8] { Array("entry \(position)".utf8) }

  @Test func `a folder of 100,000 names is filled, looked up, read in portions and half emptied meanwhile`() throws {
    let count = 100_000
    let fixture = try VaultFixture()
    var vault = try fixture.create()
    let folder = try vault.makeFolder([1], in: .rootFolder, NewNode(permissions: 0o755)).number
    // A thousand names each.
    let files = try (0..<100).map { position in
      try vault.makeSpecial(.fifo, Array("file \(position)".utf8), in: .rootFolder, NewNode(permissions: 0o600)).number
    }
    for position in 0..<count { try vault.link(files[position % 100], as: name(position), in: folder) }
    try vault.close()
    vault = try fixture.open()
    for position in stride(from: 0, to: count, by: 97) {
      let found = try vault.lookup(name(position), in: folder)
      #expect(found.number == files[position % 100] && found.linkCount == 1001)
    }
    #expect(throws: VaultError.notFound) { try vault.lookup(name(count), in: folder) }

    var given: Set<[UInt8]> = []
    var (added, removed) = (0, 0)
    var cookie: UInt64?
    while true {
      let portion = try vault.readFolder(folder, after: cookie, limit: 1000, withAttributes: true)
      guard let last = portion.last else { break }
      cookie = last.cookie
      for (position, entry) in portion.enumerated() {
        given.insert(entry.name)
        guard position.isMultiple(of: 2) else { continue }
        try vault.unlink(entry.name, in: folder)
        removed += 1
      }
      try vault.link(files[0], as: Array("new \(added)".utf8), in: folder)
      added += 1
    }
    #expect(given.count { $0.first == UInt8(ascii: "e") } == count, "what was there at the beginning is given")
    let left = try vault.list(VaultPath.root.appending([1])).count
    #expect(left == count + added - removed)
    try vault.removeRecursively(VaultPath.root.appending([1]))
    for file in files { #expect(try vault.attributes(of: file).linkCount == 1) }
    try vault.close()
  }
}
