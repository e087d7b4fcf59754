import CofferFiles
import CofferSystem
import Testing

@testable import CofferVault

@Suite struct AttributeTests {
  @Test func `any subset of the attributes changes in one step, to the nanosecond`() throws {
    let fixture = try VaultFixture()
    let clock = TestClock()
    let vault = try fixture.create(time: clock)
    let owner = FileOwner(user: 12, group: 34)
    let made = try vault.makeFile([1], in: .rootFolder, NewNode(permissions: 0o10_644, owner: owner))
    #expect(made.permissions == 0o644 && made.owner == owner && made.linkCount == 1 && made.created == clock.now())
    clock.advance()
    let time = Timestamp(seconds: -5, nanoseconds: 999_999_999)
    let changes = AttributeChanges(permissions: 0o7777, group: 4_294_967_295, accessed: .now, modified: .at(time))
    let changed = try vault.setAttributes(changes, of: made.number)
    #expect(changed.permissions == 0o7777 && changed.owner == FileOwner(user: 12, group: 4_294_967_295))
    #expect(changed.accessed == clock.now() && changed.modified == time && changed.changed == clock.now())
    #expect(changed.created == made.created && changed.revision == made.revision)
    clock.advance()
    #expect(try vault.setAttributes(AttributeChanges(), of: made.number) == changed)
    #expect(try vault.setAttributes(AttributeChanges(created: .at(time)), of: made.number).created == time)
    try vault.close()
    let again = try fixture.open()
    #expect(try again.attributes(of: made.number).permissions == 0o7777)
    try again.close()
  }

  @Test func `extended attributes are kept whole, and go with their file`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let file = try vault.makeFile([1], in: .rootFolder, NewNode(permissions: 0o600)).number
    let other = try vault.makeFolder([2], in: .rootFolder, NewNode(permissions: 0o600)).number
    let largest = [UInt8](repeating: 0xaa, count: 65_536)
    let longest = [UInt8](repeating: 0xff, count: 255)
    for number in 0..<254 {
      try vault.setExtendedAttribute(Array("user.\(number)".utf8), of: file, to: [UInt8(number)])
    }
    try vault.setExtendedAttribute(longest, of: file, to: largest)
    try vault.setExtendedAttribute([1], of: file, to: [])
    try vault.setExtendedAttribute([1], of: other, to: [3])
    try vault.close()
    let again = try fixture.open()
    #expect(try Set(again.extendedAttributeNames(of: file)).count == 256)
    #expect(try again.extendedAttribute(longest, of: file) == largest)
    #expect(try again.extendedAttribute([1], of: file) == [])
    #expect(try again.extendedAttribute(Array("user.253".utf8), of: file) == [253])
    // Full, one can still be replaced, or make room.
    try again.setExtendedAttribute([1], of: file, to: [9])
    try again.removeExtendedAttribute(longest, of: file)
    try again.setExtendedAttribute([2], of: file, to: [8], mode: .create)
    try again.unlink([1], in: .rootFolder)
    let left = try again.index.read { session in
      try session.rows(.attribute, prefix: session.rowKeys.attributePrefix(file), after: nil, limit: 1).count
    }
    #expect(left == 0)
    #expect(try again.extendedAttribute([1], of: other) == [3])
    try again.close()
  }

  @Test func `names that share a hash share a row, and are told apart`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    vault.index.read { $0.rowKeys.nameMask = 0 }
    let folder = try vault.makeFolder([1], in: .rootFolder, NewNode(permissions: 0o700)).number
    for number in 0...255 {
      _ = try vault.makeSpecial(.socket, Array("\(number)".utf8), in: folder, NewNode(permissions: 0))
    }
    #expect(throws: VaultError.nameCollisions) {
      try vault.makeFolder([98], in: folder, NewNode(permissions: 0o700))
    }
    let rows = try vault.index.read { session in
      try session.rows(.entry, prefix: session.rowKeys.entryPrefix(parent: folder), after: nil, limit: 9).count
    }
    #expect(rows == 1)
    // A cookie in the middle of the row goes on behind its name, though others come and go.
    let first = try vault.readFolder(folder, limit: 100, withAttributes: false)
    try vault.unlink(first[3].name, in: folder)
    try vault.unlink(first[99].name, in: folder)
    _ = try vault.makeSpecial(.fifo, [99], in: folder, NewNode(permissions: 0))
    let rest = try vault.readFolder(folder, after: first[99].cookie, limit: 1000, withAttributes: false)
    #expect(rest.count == 156 && Set(first.map(\.name)).isDisjoint(with: rest.map(\.name)))
    try vault.removeRecursively(VaultPath.root.appending([1]))
    try vault.close()
  }
}
