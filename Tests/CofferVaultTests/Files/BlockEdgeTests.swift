import CofferFiles
import CofferSystem
import CofferTestSupport
import Testing

@testable import CofferVault

/// Whole blocks are opened where the reader wants them, and parts of blocks elsewhere: what is read is the same wherever it
/// begins and ends, and however much room is behind it.
@Suite struct BlockEdgeTests {
  private let fixture: VaultFixture
  private let path: VaultPath

  init() throws {
    fixture = try VaultFixture()
    path = try VaultPath("file")
  }

  /// Reads into a buffer with `room` bytes, of which those behind the block that holds the last one wanted must stay.
  private func read(_ file: OpenFile, at offset: UInt64, room: Int, block: Int, end: Int) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0xee, count: room)
    let count = try buffer.withUnsafeMutableBytes { raw in Result { try file.read(at: offset, into: raw) } }.get()
    let untouched = min(room, (end + block - 1) / block * block - Int(offset))
    #expect(buffer[max(count, untouched)...].allSatisfy { $0 == 0xee }, "\(offset) \(room)")
    return Array(buffer[..<count])
  }

  @Test(arguments: [12, 14] as [UInt8], [0, 1, 4095, 4097])
  func `what is read does not depend on where it begins and how much room there is`(exponent: UInt8, more: Int) throws {
    let block = 1 << Int(exponent)
    let count = 3 * block + more
    var generator = SeededGenerator(seed: UInt64(count))
    var bytes = generator.bytes(count)
    let vault = try fixture.create()
    let file = try vault.createFile(at: path, blockSizeExponent: exponent)
    try file.write(bytes, at: 0)
    try file.sync()
    func check() throws {
      for start in [0, 1, block - 1, block, block + 1, 2 * block, 3 * block - 1, count - 1] where start < count {
        for wanted in [1, block - 1, block, block + 1, 2 * block, count - start] {
          for room in [wanted, wanted + 1, wanted + block - 1, wanted + block] {
            let found = try read(file, at: UInt64(start), room: room, block: block, end: count)
            #expect(found == Array(bytes[start..<min(count, start + room)]), "\(start) \(room)")
          }
        }
      }
    }
    try check()
    // The last block waits in memory.
    bytes[count - 1] ^= 0xff
    try file.write([bytes[count - 1]], at: UInt64(count - 1))
    try check()
    // Of one that was cut, nothing of what was behind the end is left.
    let snapshot = try file.snapshot()
    let before = bytes
    try file.truncate(to: UInt64(count - 1))
    try file.truncate(to: UInt64(count))
    bytes[count - 1] = 0
    try check()
    #expect(try snapshot.read(count + block, at: 0) == before)
    _ = consume snapshot
    try file.close()
    try vault.close()
  }

  /// Large enough for several threads, of which each takes its own pieces, across pages of the map.
  @Test(arguments: [12, 13, 14] as [UInt8])
  func `much at once is written and read by several threads`(exponent: UInt8) throws {
    var generator = SeededGenerator(seed: UInt64(exponent))
    let bytes = generator.bytes((3 << 20) + 5000)
    let vault = try fixture.create()
    let file = try vault.createFile(at: path, blockSizeExponent: exponent)
    for start in [0, 1, 4096, 300_000] as [UInt64] {
      try file.write(bytes, at: start)
      #expect(try file.read(bytes.count, at: start) == bytes)
      try file.sync()
      #expect(try file.read(bytes.count, at: start) == bytes)
    }
    try file.close()
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// What fails leaves no slot that nobody knows: the file can be written again, and takes no more room than its content.
  @Test(arguments: [1, 3, 7]) func `much at once that fails half-way can be written again`(_ call: Int) throws {
    let log = CallLog()
    let vault = try fixture.create(files: FileSystem(faults: log))
    var generator = SeededGenerator(seed: UInt64(call))
    let bytes = generator.bytes(1 << 20)
    let file = try vault.createFile(at: path, blockSizeExponent: 12)
    try file.write(bytes, at: 0)
    try file.sync()
    log.fail(.write, times: call)
    #expect(throws: VaultError.self) { try file.write([UInt8](bytes.reversed()), at: 0) }
    log.fail(.write, times: 0)
    for _ in 0..<3 {
      try file.write(bytes, at: 0)
      try file.sync()
    }
    #expect(try file.read(bytes.count, at: 0) == bytes)
    try file.close()
    try vault.commit()
    #expect(try fixture.objectSpace() <= UInt64(bytes.count) + (64 << 10))
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test func `behind a mount files that grow get small blocks, and others what suits their size`() throws {
    let vault = try fixture.create()
    func exponent(_ name: String) throws -> UInt8 {
      let file = try vault.createFile(at: VaultPath(name))
      try file.write([UInt8](repeating: 7, count: 1 << 20), at: 0)
      try file.close()
      let inode = try vault.index.read { try $0.resolve(VaultPath(name), followingLinks: false) }
      guard case .object(let object, _) = inode.content else { return 0 }
      return object.blockSizeExponent
    }
    #expect(try exponent("before") == 14)
    vault.favourRandomAccess(true)
    #expect(try exponent("while") == 12)
    vault.favourRandomAccess(false)
    #expect(try exponent("after") == 14)
    try vault.close()
  }
}
