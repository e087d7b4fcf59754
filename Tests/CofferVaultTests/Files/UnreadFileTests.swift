import CofferFiles
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@testable import CofferVault

/// Files that are open, and that nobody has read or written since: their key and their object wait for whoever first does.
@Suite struct UnreadFileTests {
  private static let sizes = [0, 1, 900, 4_096, 4_097, 60_000, 600_000]
  private let fixture: VaultFixture
  private let path: VaultPath

  init() throws {
    fixture = try VaultFixture()
    path = try VaultPath("file")
  }

  private func create(_ count: Int, log: CallLog = CallLog()) throws -> (vault: Vault, bytes: [UInt8]) {
    let vault = try fixture.create(files: FileSystem(faults: log))
    var generator = SeededGenerator(seed: UInt64(count))
    let bytes = generator.bytes(count)
    let file = try vault.createFile(at: path)
    try file.write(bytes, at: 0)
    try file.close()
    try vault.commit()
    return (vault, bytes)
  }

  /// How many bytes there are is known without the key, and where holes are.
  @Test(arguments: sizes)
  func `what is opened and not read opens nothing on the disk`(_ count: Int) throws {
    let log = CallLog()
    let (vault, bytes) = try create(count, log: log)
    let (opened, read) = (log.count(.open), log.count(.read))
    let file = try vault.open(path, .reading)
    #expect(try file.attributes.byteCount == UInt64(count))
    #expect(try file.nextHole(from: 0) == UInt64(count))
    try file.sync()
    #expect(log.count(.open) == opened && log.count(.read) == read)
    #expect(try file.read(count + 1, at: 0) == bytes)
    #expect((log.count(.read) > read) == (count > VaultFormat.inlineLimit))
    try file.close()
    try vault.close()
  }

  @Test(arguments: sizes)
  func `it outlives the file's name`(_ count: Int) throws {
    let (vault, bytes) = try create(count)
    let removed = try vault.open(path, .reading)
    try vault.remove(path)
    try vault.commit()
    let other = try VaultPath("other")
    try vault.importFile(fixture.source(bytes.reversed()), to: path)
    let replaced = try vault.open(path, .reading)
    try vault.importFile(fixture.source([1, 2, 3]), to: other)
    try vault.rename(other, to: path)
    try vault.commit()
    #expect(try removed.read(count + 1, at: 0) == bytes)
    #expect(try replaced.read(count + 1, at: 0) == bytes.reversed())
    try removed.close()
    try replaced.close()
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// Also where its content has left the object that the file had when it was opened, and that is gone.
  @Test(arguments: sizes)
  func `it has what others wrote to the file meanwhile`(_ count: Int) throws {
    let (vault, bytes) = try create(count)
    let unread = try vault.open(path, .reading)
    let snapshot = try vault.open(path, .reading).snapshot()
    let other = try vault.open(path, .writing)
    try other.truncate(to: 0)
    try other.sync()
    try other.write([7, 8, 9], at: 0)
    try other.close()
    try vault.commit()
    #expect(try unread.read(9, at: 0) == [7, 8, 9])
    #expect(try snapshot.read(count + 1, at: 0) == bytes)
    try unread.close()
    try vault.close()
  }

  /// A file says what is wrong with it to everyone who asks.
  @Test func `a file whose key is damaged is refused at each reading and writing`() throws {
    let (vault, _) = try create(60_000)
    try vault.index.perform { session in
      var inode = try session.inode(session.resolve(self.path).number)
      inode.keyCommitment[0] ^= 1
      try session.store(inode)
    }
    let damaged = VaultError.damaged(what: "a file's key")
    let file = try vault.open(path, .writing)
    for _ in 0..<2 {
      #expect(throws: damaged) { try file.read(1, at: 0) }
      #expect(throws: damaged) { try file.write([1], at: 0) }
      #expect(throws: damaged) { try file.truncate(to: 0) }
      #expect(throws: damaged) { try file.snapshot() }
    }
    try file.close()
    try vault.close()
  }

  private static func openedLargeFiles(in vault: Vault, _ fixture: VaultFixture) throws -> [OpenFile] {
    let large = [UInt8](repeating: 2, count: 4 << 20)
    return try (0..<4).map { number in
      let path = try VaultPath("large-\(number)")
      try vault.importFile(fixture.source(large), to: path)
      return try vault.open(path, .writing)
    }
  }

  /// Many small files that were read and closed leave no room in memory for more plaintext than all files may have there.
  @Test func `plaintext that waits in memory is counted whatever was read before`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let small = [UInt8](repeating: 1, count: VaultFormat.inlineLimit)
    for number in 0..<700 { try vault.importFile(fixture.source(small), to: VaultPath("small-\(number)")) }
    try vault.commit()
    for number in 0..<700 {
      let file = try vault.open(VaultPath("small-\(number)"), .reading)
      #expect(try file.read(small.count, at: 0) == small)
      try file.close()
    }
    let files = try Self.openedLargeFiles(in: vault, fixture)
    // Parts of blocks wait in memory.
    for block in 0..<60 {
      for file in files { try file.write([3], at: UInt64(block) << 16) }
      let waiting = try files.map { try #require(vault.files.node($0.attributes.number)).bufferedByteCount }
      #expect(waiting.reduce(0, +) <= 2 << 20)
    }
    for file in files { try file.close() }
    try vault.close()
  }

  /// The one may wait for the disk.
  @Test func `who writes a file makes room in memory by another than somebody is at`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let files = try Self.openedLargeFiles(in: vault, fixture)
    let nodes = try files.map { try #require(vault.files.node($0.attributes.number)) }
    // Most of it.
    for block in 0..<60 { try files[0].write([3], at: UInt64(block) << 14) }
    let (isThere, mayLeave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let left = startThread {
      nodes[0].writing.withLock { _ in
        isThere.signal()
        _ = mayLeave.wait(timeout: .now() + 120)
      }
    }
    try #require(Patience.wait(for: isThere))
    let others = files[1...]
    let written = startThread {
      for block in 0..<50 {
        for file in others { #expect(throws: Never.self) { try file.write([3], at: UInt64(block) << 14) } }
      }
    }
    let isWritten = Patience.wait(for: written)
    #expect(isWritten)
    #expect(nodes[0].bufferedByteCount == 60 << 14)
    #expect(nodes.reduce(0) { $0 + $1.bufferedByteCount } <= 2 << 20)
    mayLeave.signal()
    try #require(Patience.wait(for: left) && (isWritten || Patience.wait(for: written)))
    for file in files { try file.close() }
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// What they hold could go nowhere: to look for it with each write would make all of them slow.
  @Test func `small files that are open do not make what others write leave the memory at once`() throws {
    let (vault, _) = try create(60_000)
    let small = [UInt8](repeating: 1, count: VaultFormat.inlineLimit)
    var files: [OpenFile] = []
    for number in 0..<700 {
      let path = try VaultPath("small-\(number)")
      try vault.importFile(fixture.source(small), to: path)
      files.append(try vault.open(path, .reading))
      #expect(try files[number].read(small.count, at: 0) == small)
    }
    let file = try vault.open(path, .writing)
    try file.write([1], at: 5)
    let node = try #require(vault.files.node(file.attributes.number))
    #expect(node.bufferedByteCount > 0)
    try file.close()
    for file in files { try file.close() }
    try vault.close()
  }
}
