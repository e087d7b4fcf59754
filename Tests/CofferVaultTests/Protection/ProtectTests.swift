import CofferCrypto
import CofferFiles
import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Changing a file's class.
@Suite struct ProtectTests {
  private let fixture: VaultFixture
  private let path: VaultPath

  init() throws {
    fixture = try VaultFixture()
    path = try VaultPath("file")
  }

  private func record(_ vault: Vault) throws -> Inode { try vault.look { try $0.resolve(path) } }

  @Test(arguments: ProtectionClass.allCases, ProtectionClass.allCases)
  func `what is made has the stricter class of its folder's and what is asked of all`(
    _ folder: ProtectionClass, _ asked: ProtectionClass
  ) throws {
    let vault = try fixture.create()
    try vault.protect(.root, as: folder)
    vault.requireOfNewFiles(asked)
    let expected = ProtectionClass(rawValue: min(folder.rawValue, asked.rawValue))
    for count in [0, 1_500, 5_000_000] {
      try vault.importFile(fixture.source([UInt8](repeating: 7, count: count)), to: path)
      #expect(try record(vault).protection == expected)
      #expect(try vault.contents(of: path).count == count)
      try vault.remove(path)
    }
    let made = try vault.makeFile(Array("file".utf8), in: .rootFolder, NewNode(permissions: 0o600))
    #expect(made.protection == expected)
    let handle = try vault.open(path, .writing)
    try handle.write([1, 2, 3], at: 0)
    try handle.close()
    #expect(try vault.contents(of: path) == [1, 2, 3])
    let inner = try VaultPath("folder")
    try vault.makeDirectory(at: inner)
    #expect(try vault.attributes(at: inner).protection == expected)
    // What is there stays as it is, and so does what the folder gives once nothing is asked.
    vault.requireOfNewFiles(.none)
    #expect(try vault.attributes(at: .root).protection == folder)
  }

  @Test(arguments: [0, 1, 1_500, 40_000, 5_000_000], ProtectionClass.allCases)
  func `every change of class keeps the content, and a stricter class means a new key`(
    _ count: Int, _ old: ProtectionClass
  ) throws {
    let vault = try fixture.create()
    try vault.protect(.root, as: old)
    var generator = SeededGenerator(seed: UInt64(count))
    let bytes = generator.bytes(count)
    for new in ProtectionClass.allCases {
      try vault.importFile(fixture.source(bytes), to: path)
      let before = try record(vault)
      let oldKey = try vault.keys.unwrap(before.wrappedKey, for: old)
      let handle = try vault.open(path, .writing)
      try vault.protect(path, as: new)
      let after = try record(vault)
      #expect(after.protection == new && after.rekeying == nil)
      #expect((after.keyCommitment == before.keyCommitment) == (new.rawValue >= old.rawValue))
      #expect(try handle.read(count + 1, at: 0) == bytes)
      if new.rawValue < old.rawValue, case .object(let object, _) = after.content {
        // Nothing of the content is left under the key that was given up.
        let cipher = FileCipher(key: oldKey, vault: vault.id, inode: after.number)
        let file = try vault.objects.open(object.number, writing: false)
        let page = try #require(try vault.index.read { try $0.storedPage(after.number, 0) })
        let block = try #require(page.blocks[0])
        var stored = [UInt8](repeating: 0, count: object.blockSize)
        let found = try stored.withUnsafeMutableBytes {
          try file.readFully(at: block.slot << object.blockSizeExponent, into: $0)
        }
        #expect(found == stored.count)
        #expect(throws: CryptoError.notAuthentic) {
          try stored.withUnsafeMutableBytes { bytes in
            try cipher.sealer(page: 0).open(UnsafeRawBufferPointer(bytes), block: 0, seal: block.seal, into: bytes)
          }
        }
      }
      try handle.close()
      try vault.commit()
      #expect(try vault.verify(isDeep: true).damages.isEmpty)
      #expect(try vault.contents(of: path) == bytes)
      try vault.remove(path)
    }
  }

  /// Cancels after so many pieces.
  private func cancelling(after pieces: Int) -> TransferControl {
    let count = Atomic(0)
    return TransferControl(
      progress: { _ in count.wrappingAdd(1, ordering: .relaxed) },
      isCancelled: { count.load(ordering: .relaxed) >= pieces })
  }

  @Test(arguments: 0..<2) func `a change that was interrupted can be lived with, and goes on`(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let vault = try fixture.create()
    try vault.protect(.root, as: .none)
    // Small blocks make many pages; holes leave some out.
    let file = try vault.createFile(at: path, blockSizeExponent: 12)
    let size = 48 << 20
    var expected: [UInt64: [UInt8]] = [:]
    func write() throws {
      let offset = UInt64.random(in: 0..<UInt64(size) / 9000, using: &generator) * 9000
      let bytes = generator.bytes(9000)
      try file.write(bytes, at: offset)
      expected[offset] = bytes
    }
    for _ in 0..<500 { try write() }
    try file.sync()
    for _ in 0..<2 {
      #expect(throws: VaultError.cancelled) { try vault.protect(path, as: .complete, control: cancelling(after: 0)) }
      #expect(try record(vault).rekeying != nil)
      for (offset, bytes) in expected { #expect(try file.read(9000, at: offset) == bytes) }
      let snapshot = try vault.snapshot(of: path)
      #expect(throws: VaultError.busy) { try vault.protect(path, as: .complete) }
      for (offset, bytes) in expected { #expect(try snapshot.read(9000, at: offset) == bytes) }
      for _ in 0..<20 { try write() }
    }
    if seed.isMultiple(of: 2) {
      // The class counts from the start of the change.
      vault.lock(graceSeconds: 0)
      #expect(throws: VaultError.locked) { try file.read(1, at: 0) }
      #expect(throws: VaultError.locked) { try vault.protect(path, as: .complete) }
      try vault.unlock(passcode: VaultFixture.passcode())
    }
    try file.close()
    try vault.close()
    let again = try fixture.open()
    #expect(try again.verify(isDeep: true).damages.isEmpty)
    try again.protect(path, as: .complete)
    #expect(try record(again).rekeying == nil)
    let reader = try again.open(path, .reading)
    for (offset, bytes) in expected { #expect(try reader.read(9000, at: offset) == bytes) }
    #expect(try again.verify(isDeep: true).damages.isEmpty)
  }

  @Test(arguments: ProtectionClass.allCases)
  func `a change that was interrupted does not stand in the way of another class`(_ other: ProtectionClass) throws {
    let vault = try fixture.create()
    try vault.protect(.root, as: .none)
    var generator = SeededGenerator(seed: 5)
    let file = try vault.createFile(at: path, blockSizeExponent: 12)
    // More map pages than a step, with a block each.
    var pages: [UInt64: [UInt8]] = [:]
    for page in 0..<UInt64(70) {
      let block = generator.bytes(4096)
      pages[page << 18] = block
      try file.write(block, at: page << 18)
    }
    func requireContent(_ file: OpenFile) throws {
      for (offset, block) in pages { #expect(try file.read(4096, at: offset) == block) }
    }
    try file.sync()
    for interrupted in [ProtectionClass.untilFirstUnlock, .complete] {
      #expect(throws: VaultError.cancelled) {
        try vault.protect(path, as: interrupted, control: cancelling(after: 0))
      }
      #expect(try record(vault).rekeying != nil)
      try vault.protect(path, as: other)
      #expect(try record(vault).rekeying == nil && record(vault).protection == other)
      try requireContent(file)
      try vault.protect(path, as: .none)
    }
    try file.close()
    try vault.close()
    let again = try fixture.open()
    #expect(try again.verify(isDeep: true).damages.isEmpty)
    try requireContent(again.open(path, .reading))
  }

  @Test(arguments: [900, 50_000])
  func `a file that is read as a whole keeps its key until the reader is done`(_ count: Int) throws {
    let vault = try fixture.create()
    try vault.protect(.root, as: .none)
    try vault.importFile(fixture.source([UInt8](repeating: 1, count: count)), to: path)
    var snapshot: FileSnapshot? = try vault.snapshot(of: path)
    #expect(throws: VaultError.busy) { try vault.protect(path, as: .complete) }
    #expect(try snapshot?.read(5, at: 0) == [1, 1, 1, 1, 1])
    snapshot = nil
    try vault.protect(path, as: .complete)
    #expect(try record(vault).protection == .complete)
  }

  @Test func `a new file gets its folder's class, and what has no content gets none`() throws {
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("folder"))
    try vault.protect(VaultPath("folder"), as: .untilFirstUnlock)
    try vault.makeDirectory(at: VaultPath("folder/below"))
    try vault.importFile(fixture.source([1]), to: VaultPath("folder/below/file"))
    #expect(try vault.attributes(at: VaultPath("folder/below/file")).protection == .untilFirstUnlock)
    #expect(try vault.attributes(at: .root).protection == .complete)
    try vault.makeSymbolicLink(at: VaultPath("link"), to: Array("folder".utf8))
    #expect(throws: VaultError.wrongKind) { try vault.protect(VaultPath("link"), as: .none) }
  }
}
