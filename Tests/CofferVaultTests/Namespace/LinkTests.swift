import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@testable import CofferVault

@Suite struct LinkTests {
  @Test func `a file stays until its last name and its last reader are gone`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let bytes = [UInt8](repeating: 7, count: 50_000)
    let number = try vault.importFile(fixture.source(bytes), to: VaultPath("one")).number
    #expect(try vault.link(VaultPath("one"), to: VaultPath("two")).linkCount == 2)
    #expect(try vault.attributes(at: VaultPath("two")).number == number)
    try vault.remove(VaultPath("one"))
    #expect(try vault.contents(of: VaultPath("two")) == bytes)
    #expect(try vault.attributes(of: number).linkCount == 1)
    // Stored anew under one of two names, the other keeps the old file.
    try vault.link(VaultPath("two"), to: VaultPath("three"))
    try vault.importFile(fixture.source([1]), to: VaultPath("three"), replacing: true)
    #expect(try vault.attributes(of: number).linkCount == 1)
    #expect(try vault.contents(of: VaultPath("two")) == bytes)

    var snapshot: FileSnapshot? = try vault.snapshot(of: VaultPath("two"))
    try vault.remove(VaultPath("two"))
    try vault.commit()
    let unlinked = try vault.attributes(of: number)
    #expect(unlinked.linkCount == 0)
    // A file without a name can still change, and gets no new name.
    #expect(try vault.setAttributes(AttributeChanges(permissions: 0o400), of: number).permissions == 0o400)
    try vault.setExtendedAttribute([1], of: number, to: [2])
    #expect(throws: VaultError.notFound) { try vault.link(number, as: [9], in: .rootFolder) }
    var read = [UInt8](repeating: 0, count: bytes.count)
    #expect(try read.withUnsafeMutableBytes { try #require(snapshot).read(at: 0, into: $0) } == bytes.count)
    #expect(read == bytes)
    snapshot = nil
    #expect(throws: VaultError.notFound) { try vault.attributes(of: number) }
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `what lost its last name while it was read goes after a crash, with its attributes`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let number = try vault.importFile(fixture.source([1]), to: VaultPath("f")).number
    for attribute in UInt8(1)...9 { try vault.setExtendedAttribute([attribute], of: number, to: [attribute]) }
    let snapshot = try vault.snapshot(of: VaultPath("f"))
    try vault.remove(VaultPath("f"))
    try vault.commit()
    try fixture.copyAsAfterCrash()
    #expect(try vault.extendedAttributeNames(of: number).count == 9)
    withExtendedLifetime(snapshot) {}
    let crashed = try fixture.openAfterCrash()
    #expect(throws: VaultError.notFound) { try crashed.attributes(of: number) }
    let left = try crashed.index.read { session in
      try session.rows(.attribute, prefix: session.rowKeys.attributePrefix(number), after: nil, limit: 9).count
    }
    #expect(left == 0)
    try crashed.close()
    try vault.close()
  }

  @Test func `a file without a name gets one while it is open, and goes without one`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let folder = try vault.makeFolder([9], in: .rootFolder, NewNode(permissions: 0o700)).number
    for count in [10, 50_000, 2_000_000] {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      let (made, file) = try vault.createFile(withoutNameIn: folder, NewNode(permissions: 0o640))
      #expect(made.linkCount == 0 && made.permissions == 0o640)
      try bytes.withUnsafeBytes { try file.write($0, at: 0) }
      try file.sync()
      #expect(try vault.attributes(of: made.number).linkCount == 0)
      #expect(throws: VaultError.exists) { try vault.link(made.number, as: [9], in: .rootFolder) }
      #expect(try vault.link(made.number, as: [1], in: folder).linkCount == 1)
      #expect(try vault.link(made.number, as: [2], in: .rootFolder).linkCount == 2)
      try file.close()
      try vault.commit()
      #expect(try vault.contents(of: VaultPath([9]).appending([1])) == bytes)
      // It is a file as any other, that gets no name when it has lost its last one.
      try vault.unlink([1], in: folder)
      let open = try vault.open(made.number, .reading)
      try vault.unlink([2], in: .rootFolder)
      #expect(throws: VaultError.notFound) { try vault.link(made.number, as: [3], in: folder) }
      try open.close()
      #expect(throws: VaultError.notFound) { try vault.attributes(of: made.number) }

      let (nameless, unused) = try vault.createFile(withoutNameIn: folder, NewNode(permissions: 0o600))
      try bytes.withUnsafeBytes { try unused.write($0, at: 0) }
      try unused.close()
      #expect(throws: VaultError.notFound) { try vault.link(nameless.number, as: [3], in: folder) }
      #expect(throws: VaultError.notFound) { try vault.attributes(of: nameless.number) }
    }
    #expect(throws: VaultError.notFound) {
      try vault.createFile(withoutNameIn: InodeNumber(value: 999), NewNode(permissions: 0o600))
    }
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `a crash takes what has no name, and leaves what got one`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let bytes = [UInt8](repeating: 5, count: 50_000)
    let files = try ["kept", "gone"].map { name in
      let made = try vault.createFile(withoutNameIn: .rootFolder, NewNode(permissions: 0o600))
      try bytes.withUnsafeBytes { try made.file.write($0, at: 0) }
      if name == "kept" { try vault.link(made.attributes.number, as: Array(name.utf8), in: .rootFolder) }
      try made.file.sync()
      return made
    }
    try fixture.copyAsAfterCrash()
    withExtendedLifetime(files) {}
    let crashed = try fixture.openAfterCrash()
    #expect(try crashed.contents(of: VaultPath("kept")) == bytes)
    #expect(throws: VaultError.notFound) { try crashed.attributes(of: files[1].attributes.number) }
    #expect(try crashed.index.read { try $0.pendingRemovals() }.isEmpty)
    try crashed.close()
    try vault.close()
  }

  @Test func `a symbolic link keeps its bytes and leads nowhere unless asked`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("a/b"), withParents: true)
    try vault.makeDirectory(at: VaultPath("c"))
    let number = try vault.importFile(fixture.source([1]), to: VaultPath("c/file")).number
    for (name, target) in [
      ("a/b/up", "../../c"), ("root", "/c/file"), ("slash", "c/file/"), ("dots", "a/./b/../b/up/file"),
      ("dangling", "nowhere"), ("above", "/../../c/file"), ("chain", "dots"),
    ] {
      let link = try vault.makeSymbolicLink(at: VaultPath(name), to: Array(target.utf8))
      #expect(link.kind == .symbolicLink && link.byteCount == target.utf8.count && link.permissions == 0o777)
      #expect(try vault.readLink(at: VaultPath(name)) == Array(target.utf8))
    }
    #expect(throws: VaultError.notADirectory) { try vault.attributes(at: VaultPath("a/b/up/file")) }
    for path in ["a/b/up/file", "root", "dots", "above", "chain"] {
      #expect(try vault.attributes(at: VaultPath(path), followingLinks: true).number == number, "\(path)")
    }
    #expect(throws: VaultError.notADirectory) { try vault.attributes(at: VaultPath("slash"), followingLinks: true) }
    #expect(throws: VaultError.notFound) { try vault.attributes(at: VaultPath("dangling"), followingLinks: true) }

    // Forty links one after the other are followed, forty-one are not.
    try vault.makeSymbolicLink(at: VaultPath("l1"), to: Array("c".utf8))
    for step in 2...41 { try vault.makeSymbolicLink(at: VaultPath("l\(step)"), to: Array("l\(step - 1)".utf8)) }
    #expect(try vault.attributes(at: VaultPath("l40/file"), followingLinks: true).number == number)
    #expect(throws: VaultError.linkLoop) { try vault.attributes(at: VaultPath("l41/file"), followingLinks: true) }

    let long = [UInt8](repeating: 0xff, count: 4095)
    try vault.makeSymbolicLink(at: VaultPath("long"), to: long)
    try vault.link(VaultPath("long"), to: VaultPath("longer"))
    try vault.close()
    let again = try fixture.open()
    #expect(try again.readLink(at: VaultPath("longer")) == long)
    #expect(try again.attributes(at: VaultPath("longer")).linkCount == 2)
    // What a link leads to stays when the link goes.
    try again.removeRecursively(VaultPath("a"))
    #expect(try again.attributes(at: VaultPath("c/file")).number == number)
    try again.close()
  }

  @Test func `an exchange swaps files, folders and one for the other, and keeps count`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("a/folder/deep"), withParents: true)
    try vault.makeDirectory(at: VaultPath("b"))
    try vault.importFile(fixture.source([1]), to: VaultPath("b/file"))
    let (a, b) = (try vault.attributes(at: VaultPath("a")), try vault.attributes(at: VaultPath("b")))
    #expect(a.linkCount == 3 && b.linkCount == 2)
    try vault.rename(VaultPath("a/folder"), to: VaultPath("b/file"), mode: .exchange)
    #expect(try vault.attributes(at: VaultPath("a")).linkCount == 2)
    #expect(try vault.attributes(at: VaultPath("b")).linkCount == 3)
    #expect(try vault.contents(of: VaultPath("a/folder")) == [1])
    let moved = try vault.attributes(at: VaultPath("b/file"))
    #expect(try vault.parent(of: moved.number) == b.number)
    #expect(try vault.attributes(at: VaultPath("b/file/deep")).kind == .directory)
    // With a folder that lies elsewhere, and with the names of one folder.
    try vault.rename(VaultPath("a"), to: VaultPath("b/file/deep"), mode: .exchange)
    #expect(try vault.contents(of: VaultPath("b/file/deep/folder")) == [1])
    #expect(try vault.parent(of: a.number) == moved.number)
    try vault.rename(VaultPath("a"), to: VaultPath("b"), mode: .exchange)
    #expect(try vault.contents(of: VaultPath("a/file/deep/folder")) == [1])
    // Two names of one file: nothing to do.
    try vault.link(VaultPath("a/file/deep/folder"), to: VaultPath("same"))
    let before = try vault.attributes(at: VaultPath("same"))
    try vault.rename(VaultPath("same"), to: VaultPath("a/file/deep/folder"))
    try vault.rename(VaultPath("same"), to: VaultPath("a/file/deep/folder"), mode: .exchange)
    #expect(try vault.attributes(at: VaultPath("same")) == before)
    try vault.close()
  }
}
