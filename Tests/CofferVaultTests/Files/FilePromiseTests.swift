import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// An example for each promise of random access.
@Suite struct FilePromiseTests {
  private static let block = 4096
  private let fixture: VaultFixture
  private let path: VaultPath

  init() throws {
    fixture = try VaultFixture()
    path = try VaultPath("f")
  }

  private func make(_ vault: Vault, _ name: String = "f", exponent: UInt8? = 12) throws -> OpenFile {
    try vault.createFile(at: VaultPath(name), exclusive: true, blockSizeExponent: exponent)
  }

  @Test func `a snapshot keeps its bytes while the file is written over, cut and removed`() throws {
    var generator = SeededGenerator(seed: 1)
    let vault = try fixture.create()
    let file = try make(vault)
    let first = generator.bytes(100 * Self.block + 17)
    try file.write(first, at: 0)
    var one: FileSnapshot? = try file.snapshot()
    let second = generator.bytes(50 * Self.block)
    try file.write(second, at: 10_000)
    try file.sync()
    let two = try file.snapshot()
    let middle = try file.read(first.count, at: 0)
    try file.truncate(to: 5 * UInt64(Self.block))
    try file.sync()
    try file.write(generator.bytes(90 * Self.block), at: 0)
    try file.sync()
    #expect(try one?.read(first.count + 5, at: 0) == first)
    #expect(try two.read(first.count + 5, at: 0) == middle)
    one = nil
    #expect(try two.read(first.count, at: 0) == middle)
    try file.close()
    try vault.remove(path)
    try vault.commit()
    #expect(try two.read(first.count, at: 0) == middle)
    try vault.close()
  }

  @Test func `ciphertext that a commit refers to is never written over`() throws {
    var generator = SeededGenerator(seed: 2)
    let vault = try fixture.create()
    let file = try make(vault)
    try file.write(generator.bytes(64 * Self.block), at: 0)
    try file.sync()
    let url = try #require(TamperTests.objects(fixture.vaultPath).first)
    for _ in 0..<5 {
      let committed = try Data(contentsOf: url)
      // Slots that were freed by earlier rounds may be written, the present ones not: what a crash now leaves must
      // open as it was committed.
      let expected = try file.read(64 * Self.block, at: 0)
      for _ in 0..<40 {
        let place = UInt64.random(in: 0..<64, using: &generator) * UInt64(Self.block)
        try file.write(generator.bytes(Self.block), at: place)
        try file.write(generator.bytes(10), at: place + 100)
      }
      // Joins, without a commit.
      try vault.open(path, .writing).close()
      try crash(expecting: expected)
      #expect(try Data(contentsOf: url) != committed)
      try file.sync()
      try crash(expecting: try file.read(64 * Self.block, at: 0))
    }
    // Twice the file and what is written between two joins: freed slots are used again.
    #expect(try fixture.objectSpace() <= UInt64(4 * 64 * Self.block))
    try file.close()
    try vault.close()
  }

  /// Opens a copy of what is on the disk now.
  private func crash(expecting expected: [UInt8]) throws {
    let folder = try TemporaryFolder()
    for name in ["vault", "keys"] {
      try FileManager.default.copyItem(atPath: fixture.folder(name), toPath: folder(name))
    }
    let vault = try Vault.open(
      at: folder("vault"), keyStore: FileKeyStore(path: folder("keys")), passcode: { VaultFixture.passcode() })
    #expect(try vault.contents(of: path) == expected)
    try vault.close()
  }

  @Test func `space goes back after a hole, a cut, and a removal`() throws {
    let vault = try fixture.create()
    let file = try make(vault)
    let count = 4 << 20
    try file.write([UInt8](repeating: 1, count: count), at: 0)
    try file.sync()
    let full = try fixture.objectSpace()
    #expect(full >= UInt64(count))
    // What the file system counts for its own list of where the file lies.
    let ownRoom: UInt64 = 64 << 10
    try file.punchHole(0..<UInt64(count / 2))
    #expect(try file.attributes.storedByteCount == UInt64(count / 2))
    try file.close()
    try vault.commit()
    #expect(try fixture.objectSpace() <= UInt64(count / 2) + ownRoom)
    let again = try vault.open(path, .writing)
    #expect(try again.read(count, at: 0).prefix(count / 2).allSatisfy { $0 == 0 })
    try again.truncate(to: UInt64(count / 2 + count / 4))
    try again.close()
    try vault.commit()
    #expect(try fixture.objectSpace() <= UInt64(count / 4) + ownRoom)
    try vault.remove(path)
    try vault.commit()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
    try vault.close()
  }

  @Test func `a sparse file of terabytes costs what is stored in it`() throws {
    let vault = try fixture.create()
    let size: UInt64 = 8 << 40
    let file = try make(vault)
    let places = [0, size / 2 + 5, size - 3]
    for place in places { try file.write([7, 7, 7], at: place) }
    try file.truncate(to: size + 1)
    try file.sync()
    #expect(try file.attributes.byteCount == size + 1)
    #expect(try file.attributes.storedByteCount == 3 * UInt64(Self.block))
    #expect(try fixture.objectSpace() <= 5 * UInt64(Self.block))
    #expect(try file.nextData(from: 1 << 30) == (size / 2) / 4096 * 4096)
    #expect(try file.nextData(from: size / 2 + 4096) == size - 4096)
    #expect(try file.nextHole(from: 0) == 4096)
    #expect(try file.nextHole(from: size - 3) == size)
    #expect(try file.nextData(from: size) == nil)
    #expect(try file.read(6, at: size - 4) == [0, 7, 7, 7, 0])
    try file.punchHole(1..<size)
    #expect(try file.nextData(from: 4096) == nil)
    try file.truncate(to: 1)
    #expect(try file.read(10, at: 0) == [7])
    try file.write([9], at: size)
    try file.close()
    let index = try FileSystem().status(of: fixture.vaultPath + "/index.sqlite")
    #expect((index?.byteCount ?? 0) < 1 << 20)
    try vault.remove(path)
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `threads that read and write whole blocks see old ones or new ones`() async throws {
    let vault = try fixture.create()
    let file = try make(vault)
    let blocks = 32
    for block in 0..<blocks {
      try file.write([UInt8](repeating: 1, count: Self.block), at: UInt64(block * Self.block))
    }
    let path = path
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        group.addTask {
          var generator = SeededGenerator(seed: UInt64(worker))
          let handle = try vault.open(path, .writing)
          for round in 0..<400 {
            let place = UInt64.random(in: 0..<UInt64(blocks), using: &generator) * UInt64(Self.block)
            if worker < 2 {
              try handle.write(
                [UInt8](repeating: UInt8.random(in: 1...255, using: &generator), count: Self.block), at: place)
              if round.isMultiple(of: 50) { try handle.sync() }
            } else {
              let found = try handle.read(Self.block, at: place)
              #expect(found[0] != 0 && found.allSatisfy { $0 == found[0] }, "round \(round)")
            }
          }
          try handle.close()
        }
      }
      try await group.waitForAll()
    }
    try file.close()
    try vault.close()
  }

  @Test func `appends of several threads land one behind the other`() async throws {
    let vault = try fixture.create()
    let file = try make(vault, exponent: nil)
    let places = try await withThrowingTaskGroup(of: [UInt64].self) { group in
      for worker in 0..<4 {
        group.addTask {
          try (0..<200).map { _ in try file.append([UInt8](repeating: UInt8(worker + 1), count: 100)).offset }
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(places.sorted() == (0..<800).map { UInt64($0 * 100) })
    let bytes = try file.read(100_000, at: 0)
    #expect(bytes.count == 80_000)
    for start in stride(from: 0, to: bytes.count, by: 100) {
      #expect(Set(bytes[start..<(start + 100)]).count == 1)
    }
    try file.close()
    try vault.close()
  }

  @Test func `a small file grows out of its record and comes back`() throws {
    let vault = try fixture.create()
    let file = try make(vault, exponent: nil)
    for size in [10, 4096, 4097, 100_000, 700_000, 5, 2_000_000, 0, 4000] {
      try file.truncate(to: 0)
      try file.write([UInt8](repeating: 3, count: size), at: 0)
      try file.sync()
      #expect(try TamperTests.objects(fixture.vaultPath).count == (size > 4096 ? 1 : 0), "\(size)")
      #expect(try file.read(3_000_000, at: 0) == [UInt8](repeating: 3, count: size))
    }
    try file.close()
    try vault.close()
  }

  @Test func `what a file takes is known before it joins`() throws {
    let vault = try fixture.create()
    for size in [0, 1, 4096, 4097, 10_000, 65_536, 100_000, 200_000, 700_000] {
      let file = try make(vault, "\(size)", exponent: nil)
      try file.write([UInt8](repeating: 1, count: size), at: 0)
      let said = try file.attributes.storedByteCount
      try file.sync()
      #expect(try file.attributes.storedByteCount == said, "\(size)")
      #expect(said >= size)
      try file.close()
    }
    try vault.close()
  }

  @Test func `a sync of a small file leaves another file's dirty blocks alone`() throws {
    let log = CallLog()
    let vault = try fixture.create(files: FileSystem(faults: log))
    let large = try make(vault, "large")
    try large.write([UInt8](repeating: 1, count: 1 << 20), at: 0)
    try large.sync()
    for block in 0..<100 { try large.write([2], at: UInt64(block * 8192 + 1)) }
    let small = try make(vault, "small")
    try small.write([1, 2, 3], at: 0)
    let (writes, syncs) = (log.count(.write), log.count(.sync))
    try small.sync()
    // Neither has an object to write to or sync: the index is SQLite's.
    #expect(log.count(.write) == writes)
    #expect(log.count(.sync) == syncs)
    try large.sync()
    #expect(log.count(.write) > writes)
    try large.close()
    try small.close()
    try vault.close()
  }

  @Test func `a sync that fails is reported once to each handle, and closes the file to changes`() throws {
    let log = CallLog()
    let vault = try fixture.create(files: FileSystem(faults: log))
    let one = try make(vault)
    try one.write([UInt8](repeating: 1, count: 50_000), at: 0)
    try one.sync()
    let two = try vault.open(path, .writing)
    try one.write([UInt8](repeating: 2, count: 50_000), at: 0)
    log.fail(.sync, times: 1)
    let failure = VaultError.system(SystemError(code: EIO, call: "sync"))
    #expect(throws: failure) { try one.sync() }
    #expect(throws: failure) { try two.close() }
    #expect(throws: VaultError.needsReopening) { try one.sync() }
    #expect(throws: VaultError.needsReopening) { try one.write([1], at: 0) }
    // Others are not concerned.
    let other = try make(vault, "other")
    try other.write([5], at: 0)
    try other.sync()
    try one.close()
    try? vault.close()
    let again = try fixture.open()
    #expect(try again.contents(of: path) == [UInt8](repeating: 1, count: 50_000))
    #expect(try again.contents(of: VaultPath("other")) == [5])
    try again.close()
  }

  @Test func `a disk without room takes nothing away, and the write is made when there is some`() throws {
    let log = CallLog()
    let vault = try fixture.create(files: FileSystem(faults: log))
    let file = try make(vault)
    try file.write([UInt8](repeating: 1, count: 50_000), at: 0)
    try file.sync()
    log.fail(.write, times: 1)
    try file.write([9], at: 5)
    #expect(throws: VaultError.self) { try file.sync() }
    try file.sync()
    #expect(try file.read(2, at: 4) == [1, 9])
    try file.close()
    try vault.close()
    let again = try fixture.open()
    #expect(try again.contents(of: path)[5] == 9)
    try again.close()
  }

  @Test func `one damaged block leaves the others readable`() throws {
    let vault = try fixture.create()
    let file = try make(vault)
    try file.write([UInt8](repeating: 4, count: 10 * Self.block), at: 0)
    try file.sync()
    let url = try #require(TamperTests.objects(fixture.vaultPath).first)
    let object = try FileSystem().open(url.path, .readWrite)
    try [UInt8](repeating: 0, count: 8).withUnsafeBytes { raw in
      Result { try object.writeAll(raw, at: UInt64(3 * Self.block)) }
    }.get()
    var damaged = 0
    for block in 0..<10 {
      do {
        let found = try file.read(Self.block, at: UInt64(block * Self.block))
        #expect(found == [UInt8](repeating: 4, count: Self.block))
      } catch VaultError.damaged {
        damaged += 1
      }
    }
    #expect(damaged == 1)
    try file.close()
    try vault.close()
  }

  @Test func `a file without a name is there until its last handle is closed`() throws {
    let vault = try fixture.create()
    let file = try make(vault)
    try file.write([UInt8](repeating: 1, count: 20_000), at: 0)
    try vault.remove(path)
    try vault.commit()
    try file.write([2], at: 100_000)
    #expect(try file.read(3, at: 99_999) == [0, 2])
    #expect(try file.attributes.linkCount == 0)
    try file.sync()
    try file.close()
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
    #expect(try fixture.open().list(.root).isEmpty)
  }
}
