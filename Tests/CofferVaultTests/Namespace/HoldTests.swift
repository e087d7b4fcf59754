import CofferFiles
import CofferSystem
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// What has no name any more, and somebody holds without using it.
@Suite struct HoldTests {
  private static let kinds = ["small", "large", "folder", "link", "fifo"]
  private let fixture: VaultFixture
  private let vault: Vault
  private let held = ModelRun.HeldNumbers()

  init() throws {
    fixture = try VaultFixture()
    vault = try fixture.create()
  }

  private func hold() -> NodeHold {
    vault.hold { [held] number in held.numbers.withLock { $0.contains(number) } }
  }

  private func letGo(of number: InodeNumber, _ hold: NodeHold) {
    held.numbers.withLock { _ = $0.remove(number) }
    hold.letGo(of: number)
  }

  /// More pages than one operation removes.
  private static let large = [UInt8](repeating: 7, count: 70 << 20)

  private func make(_ kind: String, as name: String) throws -> InodeNumber {
    let node = NewNode(permissions: 0o700)
    let number =
      switch kind {
      case "folder": try vault.makeFolder(Array(name.utf8), in: .rootFolder, node).number
      case "link": try vault.makeSymbolicLink(Array(name.utf8), in: .rootFolder, to: Array("there".utf8), node).number
      case "fifo": try vault.makeSpecial(.fifo, Array(name.utf8), in: .rootFolder, node).number
      default: try vault.importFile(fixture.source(content(kind)), to: VaultPath(name)).number
      }
    try vault.setExtendedAttribute([1], of: number, to: [2])
    return number
  }

  private func content(_ kind: String) -> [UInt8] { kind == "large" ? Self.large : [1, 2, 3] }

  private func read(_ number: InodeNumber) throws -> [UInt8] {
    let file = try vault.open(number, .reading)
    var bytes = [UInt8](repeating: 0, count: Self.large.count + 1)
    let count = try bytes.withUnsafeMutableBytes { try file.read(at: 0, into: $0) }
    try file.close()
    return Array(bytes[..<count])
  }

  /// All that it was, but its name.
  private func expectThere(_ number: InodeNumber, _ kind: String) throws {
    #expect(try vault.attributes(of: number).linkCount == 0, "\(kind)")
    #expect(try vault.extendedAttribute([1], of: number) == [2], "\(kind)")
    switch kind {
    case "folder":
      #expect(throws: VaultError.notFound) { try vault.makeFolder([9], in: number, NewNode(permissions: 0o700)) }
      #expect(throws: VaultError.notFound) { try vault.readFolder(number, limit: 1, withAttributes: false) }
    case "link": #expect(try vault.readLink(number) == Array("there".utf8))
    case "fifo": break
    default: #expect(try read(number) == content(kind))
    }
    if kind != "folder" {
      #expect(throws: VaultError.notFound) { try vault.link(number, as: [9], in: .rootFolder) }
    }
  }

  private func expectGone(_ numbers: [InodeNumber], from vault: Vault) throws {
    for number in numbers { #expect(throws: VaultError.notFound) { try vault.attributes(of: number) } }
    // A thread deletes a large object once its removal is committed, and its mark goes with the next commit.
    vault.commits.wait()
    try vault.commit()
    #expect(try vault.index.read { try $0.pendingRemovals() }.isEmpty)
    let report = try vault.verify(isDeep: true)
    #expect(report.isClean && report.strayRecordCount == 0)
  }

  @Test(arguments: ["unlinked", "replaced"]) func `what is held stays as it was until it is let go of`(_ way: String)
    throws
  {
    let hold = hold()
    var numbers: [String: InodeNumber] = [:]
    for kind in Self.kinds {
      let number = try make(kind, as: kind)
      numbers[kind] = number
      held.numbers.withLock { _ = $0.insert(number) }
      if way == "replaced" {
        _ = try make(kind == "folder" ? "folder" : "small", as: "other")
        try vault.rename(VaultPath("other"), to: VaultPath(kind), mode: .replace)
      } else {
        try vault.remove(VaultPath(kind))
      }
    }
    for (kind, number) in numbers { try expectThere(number, kind) }
    // A commit has to say that they will go, and nothing else changes.
    try vault.commit()
    for (kind, number) in numbers { try expectThere(number, kind) }
    #expect(try vault.index.read { try $0.pendingRemovals() }.count == Self.kinds.count)
    #expect(try vault.verify(isDeep: true).isClean)

    try fixture.copyAsAfterCrash()
    let crashed = try fixture.openAfterCrash()
    try expectGone(Array(numbers.values), from: crashed)
    try crashed.close()

    for number in numbers.values { letGo(of: number, hold) }
    try vault.commit()
    try expectGone(Array(numbers.values), from: vault)
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `what was changed while it was held is what is found`() throws {
    let hold = hold()
    let number = try make("small", as: "file")
    held.numbers.withLock { _ = $0.insert(number) }
    try vault.remove(VaultPath("file"))
    let longer = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 * 7) }
    let file = try vault.open(number, .writing)
    try longer.withUnsafeBytes { try file.write($0, at: 0) }
    try file.close()
    #expect(try read(number) == longer)
    #expect(try vault.attributes(of: number).byteCount == 300_000)
    try vault.commit()
    #expect(try read(number) == longer)
    // Who uses it keeps it from going, and is its last user.
    let last = try vault.open(number, .reading)
    letGo(of: number, hold)
    try vault.commit()
    #expect(try vault.attributes(of: number).linkCount == 0)
    try last.close()
    try vault.commit()
    try expectGone([number], from: vault)
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `what was made without a name can be opened and named as long as it is held`() throws {
    let hold = hold()
    for count in [3, 300_000] {
      let bytes = [UInt8](repeating: 9, count: count)
      let numbers = try (0..<2).map { _ in
        let made = try vault.createFile(withoutNameIn: .rootFolder, NewNode(permissions: 0o600))
        held.numbers.withLock { _ = $0.insert(made.attributes.number) }
        try bytes.withUnsafeBytes { try made.file.write($0, at: 0) }
        try made.file.close()
        return made.attributes.number
      }
      for number in numbers { #expect(try read(number) == bytes) }
      try vault.commit()
      #expect(try vault.link(numbers[0], as: [1], in: .rootFolder).linkCount == 1)
      for number in numbers { letGo(of: number, hold) }
      try vault.commit()
      #expect(try vault.contents(of: VaultPath([1])) == bytes)
      try expectGone([numbers[1]], from: vault)
      try vault.unlink([1], in: .rootFolder)
      #expect(throws: VaultError.notFound) { try vault.attributes(of: numbers[0]) }
    }
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `what two hold goes with the second, and all that one holds with its hold`() throws {
    let number = try make("small", as: "file")
    let folder = try make("folder", as: "folder")
    let hold = hold()
    held.numbers.withLock { $0.formUnion([number, folder]) }
    let second = vault.hold { $0 == number }
    try vault.remove(VaultPath("file"))
    try vault.remove(VaultPath("folder"))
    letGo(of: number, hold)
    try vault.commit()
    #expect(try read(number) == content("small"))
    #expect(try vault.attributes(of: folder).linkCount == 0)
    second.letGoOfAll()
    #expect(throws: VaultError.notFound) { try vault.attributes(of: number) }
    #expect(try vault.attributes(of: folder).linkCount == 0)
    hold.letGoOfAll()
    try vault.commit()
    try expectGone([number, folder], from: vault)
    try vault.close()
  }

  /// They go together, and without anybody asking for it.
  @Test func `many that are let go of one by one are gone before a commit`() throws {
    let hold = hold()
    let numbers = try (0..<300).map { try make("small", as: "file \($0)") }
    held.numbers.withLock { $0.formUnion(numbers) }
    try vault.commit()
    for position in numbers.indices { try vault.remove(VaultPath("file \(position)")) }
    for number in numbers { letGo(of: number, hold) }
    let left = numbers.count { (try? vault.attributes(of: $0)) != nil }
    #expect(left < 64)
    try vault.commit()
    try expectGone(numbers, from: vault)
    try vault.close()
  }

  /// Nobody may change anything else for a long time.
  @Test func `what is let go of last goes with a commit that nobody asks for`() throws {
    let fixture = try VaultFixture()
    let scheduler = InterleavingTests.Manual()
    var options = TestVault.options
    options.scheduler = scheduler
    let vault = try fixture.create(options: options)
    let number = try vault.importFile(fixture.source(Array(repeating: 1, count: 300_000)), to: VaultPath("file")).number
    let hold = vault.hold { [held] number in held.numbers.withLock { $0.contains(number) } }
    held.numbers.withLock { _ = $0.insert(number) }
    let file = try vault.open(number, .reading)
    try vault.remove(VaultPath("file"))
    scheduler.run()
    try vault.commit()
    try file.close()
    letGo(of: number, hold)
    #expect(try vault.attributes(of: number).linkCount == 0)
    scheduler.run()
    #expect(throws: VaultError.notFound) { try vault.attributes(of: number) }
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
    try vault.close()
  }

  /// A program goes on before it is heard that it has let go of something.
  @Test func `who lacks room waits until holders have heard what was let go of`() throws {
    let hasHeard = Atomic(false)
    let isHeld = Atomic(true)
    let numbers = try ["held", "let go of"].map { try make("small", as: $0) }
    try withExtendedLifetime(numbers) {
      let later = numbers[1]
      let hold = vault.hold { number in
        number != later || isHeld.load(ordering: .acquiring)
      } hearing: {
        { hasHeard.load(ordering: .acquiring) }
      }
      for name in ["held", "let go of"] { try vault.remove(VaultPath(name)) }
      let isDone = startThread { [vault] in
        vault.files.waitUntilSettled(until: .now + .seconds(86_400)) { vault.removeLetGo() }
      }
      while !vault.files.isAwaited { sched_yield() }
      isHeld.store(false, ordering: .releasing)
      hold.letGo(of: later)
      #expect(throws: VaultError.notFound) { try vault.attributes(of: later) }
      // One of them is there yet, and may be about to go.
      #expect(vault.files.isAwaited)
      hasHeard.store(true, ordering: .releasing)
      isDone.wait()
      #expect(try vault.attributes(of: numbers[0]).linkCount == 0)
      // Nothing else comes.
      vault.files.waitUntilSettled(until: .now + .seconds(86_400)) { vault.removeLetGo() }
      hold.letGoOfAll()
    }
    try vault.close()
  }

  @Test func `who lacks room waits no longer than for what is there, nor for ever`() throws {
    let number = try make("small", as: "file")
    let file = try vault.open(number, .reading)
    let hold = vault.hold { _ in
      false
    } hearing: {
      { false }
    }
    try vault.remove(VaultPath("file"))
    vault.files.waitUntilSettled(until: .now + .milliseconds(1)) { vault.removeLetGo() }
    #expect(try vault.attributes(of: number).linkCount == 0)
    let isDone = startThread { [vault] in
      vault.files.waitUntilSettled(until: .now + .seconds(86_400)) { vault.removeLetGo() }
    }
    while !vault.files.isAwaited { sched_yield() }
    try file.close()
    isDone.wait()
    #expect(throws: VaultError.notFound) { try vault.attributes(of: number) }
    #expect(!vault.hasUnsettledRemovals)
    hold.letGoOfAll()
    try vault.close()
  }

  @Test func `what got its name when nobody had it open any more survives a crash with its content`() throws {
    let hold = hold()
    let bytes = [UInt8](repeating: 9, count: 300_000)
    let made = try vault.createFile(withoutNameIn: .rootFolder, NewNode(permissions: 0o600))
    let number = made.attributes.number
    held.numbers.withLock { _ = $0.insert(number) }
    try bytes.withUnsafeBytes { try made.file.write($0, at: 0) }
    try made.file.close()
    try vault.link(number, as: Array("named".utf8), in: .rootFolder)
    try vault.commitNames()
    try fixture.copyAsAfterCrash()
    let crashed = try fixture.openAfterCrash()
    #expect(try crashed.contents(of: VaultPath("named")) == bytes)
    #expect(try crashed.verify(isDeep: true).isClean)
    try crashed.close()
    letGo(of: number, hold)
    try vault.commit()
    #expect(try vault.contents(of: VaultPath("named")) == bytes)
    try vault.close()
  }

  @Test func `many go together also where nothing of them is in memory, and some have much beside their content`()
    throws
  {
    let hold = hold()
    let numbers = try (0..<150).map { position in
      let number = try vault.importFile(
        fixture.source(Array(repeating: 1, count: 9000)), to: VaultPath("file \(position)")
      ).number
      for attribute in 0..<UInt8(position % 10) {
        try vault.setExtendedAttribute([attribute + 1], of: number, to: [UInt8](repeating: 1, count: 2000))
      }
      return number
    }
    held.numbers.withLock { $0.formUnion(numbers) }
    try vault.commit()
    for position in numbers.indices { try vault.remove(VaultPath("file \(position)")) }
    try vault.commit()
    try vault.index.forgetOpened()
    for number in numbers { letGo(of: number, hold) }
    try vault.commit()
    try expectGone(numbers, from: vault)
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  /// The disk may be full when a commit marks them.
  @Test func `what a commit marked that failed is marked by the next`() throws {
    let hold = hold()
    let numbers = try Self.kinds.map { try make($0, as: $0) }
    held.numbers.withLock { $0.formUnion(numbers) }
    try vault.commit()
    for kind in Self.kinds { try vault.remove(VaultPath(kind)) }
    for isGoneMeanwhile in [false, true] {
      let begun = try #require(try vault.index.beginCommit())
      if isGoneMeanwhile {
        letGo(of: numbers[0], hold)
        vault.removeLetGo()
      }
      vault.index.read { $0.fail(begun, isFinal: false) }
    }
    try vault.commit()
    #expect(try vault.index.read { try $0.pendingRemovals() }.count == Self.kinds.count - 1)
    try fixture.copyAsAfterCrash()
    let crashed = try fixture.openAfterCrash()
    try expectGone(numbers, from: crashed)
    try crashed.close()
    hold.letGoOfAll()
    try vault.commit()
    try expectGone(numbers, from: vault)
    try vault.close()
  }

  @Test func `what was written to what is held is kept from everybody while the vault is locked`() throws {
    let hold = hold()
    let number = try make("small", as: "file")
    held.numbers.withLock { _ = $0.insert(number) }
    try vault.remove(VaultPath("file"))
    let file = try vault.open(number, .writing)
    try [UInt8](repeating: 5, count: 100).withUnsafeBytes { try file.write($0, at: 0) }
    try file.close()
    vault.lock(graceSeconds: 0)
    #expect(throws: VaultError.locked) { try vault.open(number, .reading) }
    _ = try vault.unlock(passcode: VaultFixture.passcode())
    #expect(try read(number) == [UInt8](repeating: 5, count: 100))
    hold.letGoOfAll()
    try vault.close()
  }
}
