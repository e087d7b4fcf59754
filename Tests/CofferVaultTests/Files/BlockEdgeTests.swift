import CofferFiles
import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
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
    let rest = buffer[max(count, untouched)...]
    #expect(rest == ArraySlice(repeating: 0xee, count: rest.count), "\(offset) \(room)")
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

  @Test(arguments: [12, 14] as [UInt8])
  func `who comes upon a damaged block gets nothing, not even what was before it`(exponent: UInt8) throws {
    let block = 1 << Int(exponent)
    let count = 3 * block + 100
    let vault = try fixture.create()
    let file = try vault.createFile(at: path, blockSizeExponent: exponent)
    try file.write([UInt8](repeating: 7, count: count), at: 0)
    try file.sync()
    let object = try FileSystem().open(#require(TamperTests.objects(fixture.vaultPath).first).path, .readWrite)
    // The last block, of which a reader with room for the whole has it opened in its own memory.
    try [UInt8](repeating: 0, count: 64).withUnsafeBytes { raw in
      Result { try object.writeAll(raw, at: UInt64(3 * block)) }
    }.get()
    #expect(try file.read(3 * block, at: 0) == [UInt8](repeating: 7, count: 3 * block))
    for offset in [0, 1, 2 * block, 3 * block, 3 * block + 1] {
      for behind in [0, 1, block - 100, block] {
        let wanted = count - offset
        var buffer = [UInt8](repeating: 0xee, count: wanted + behind)
        let outcome = buffer.withUnsafeMutableBytes { raw in Result { try file.read(at: UInt64(offset), into: raw) } }
        guard case .failure(VaultError.damaged) = outcome else {
          Issue.record("\(offset) \(behind): \(outcome)")
          continue
        }
        #expect(buffer[..<wanted].allSatisfy { $0 == 0 }, "\(offset) \(behind)")
        #expect(buffer[wanted...].allSatisfy { $0 == 0 || $0 == 0xee }, "\(offset) \(behind)")
      }
    }
    try file.close()
    try vault.close()
  }

  /// Large enough for several threads, of which each takes its own pieces, across pages of the map.
  @Test(arguments: [12, 13, 14, 20] as [UInt8])
  func `much at once is written and read by several threads`(exponent: UInt8) throws {
    var generator = SeededGenerator(seed: UInt64(exponent))
    let bytes = generator.bytes((3 << 20) + 5000)
    let vault = try fixture.create()
    let file = try vault.createFile(at: path, blockSizeExponent: exponent)
    for start in [0, 1, 4096, 300_000] as [UInt64] {
      try file.write(bytes, at: start)
      #expect(try file.read(bytes.count, at: start) == bytes)
      try file.sync()
      // With room behind the end, and from the middle of a block.
      #expect(try file.read(bytes.count + 8192, at: start) == bytes)
      let snapshot = try file.snapshot()
      #expect(try snapshot.read(bytes.count, at: start + 777) == Array(bytes[777...]))
    }
    try file.close()
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// Lets a write of those that follow fail.
  private final class OneFailure: FaultPlan {
    private let left = Atomic(0)
    func fail(_ number: Int) { left.store(number, ordering: .relaxed) }

    func willCall(_ call: SystemCall) throws(SystemError) {
      guard call == .write, left.load(ordering: .relaxed) > 0 else { return }
      if left.subtract(1, ordering: .relaxed).newValue == 0 { throw SystemError(code: EIO, call: call.rawValue) }
    }
  }

  /// Whoever goes on behind what they are told has everything once, also where the first that failed is tried again.
  @Test(arguments: [5000, 400 << 10, 1 << 20], 1...8)
  func `of what is written behind the end each byte is there once, whatever fails`(count: Int, number: Int) throws {
    let plan = OneFailure()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    var generator = SeededGenerator(seed: UInt64(number))
    let file = try vault.createFile(at: path, blockSizeExponent: 12)
    var expected = generator.bytes(count + 100)
    try file.write(expected, at: 0)
    try file.sync()
    var shortCount = 0
    for isAppended in [true, false] {
      let new = generator.bytes(count)
      plan.fail(number)
      var (done, failureCount) = (0, 0)
      while done < count {
        let end = UInt64(expected.count + done)
        do {
          let written = try file.writeSome(Array(new[done...]), at: isAppended ? nil : end)
          #expect(written.offset == end)
          #expect((1...(count - done)).contains(written.count))
          done += written.count
          if done < count { shortCount += 1 }
        } catch {
          failureCount += 1
        }
        #expect(try file.attributes.byteCount == UInt64(expected.count + done))
      }
      plan.fail(0)
      #expect(failureCount <= 1)
      expected += new
      let isSame = try file.read(expected.count + 1, at: 0) == expected
      #expect(isSame)
    }
    // Some came only in part.
    if count == 400 << 10, number == 2 { #expect(shortCount > 0) }
    try file.close()
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test(arguments: [100, 4096, 400 << 10, 1 << 20]) func `a write behind the end that fails leaves the end where it is`(
    count: Int
  ) throws {
    let plan = OneFailure()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    let file = try vault.createFile(at: path, blockSizeExponent: 12)
    var generator = SeededGenerator(seed: 9)
    let old = generator.bytes(10_000)
    try file.write(old, at: 0)
    try file.sync()
    for gap in [0, 100, 1 << 20, (1 << 20) + 100] as [UInt64] {
      let end = try file.attributes.byteCount
      let place = (end + 4095) & ~4095 + gap
      plan.fail(1)
      let outcome = Result { try file.writeSome([UInt8](repeating: 7, count: count), at: place) }
      plan.fail(0)
      let size = try file.attributes.byteCount
      switch outcome {
      case .success(let written): #expect(size == place + UInt64(written.count))
      case .failure: #expect(size == end)
      }
      try file.truncate(to: end)
      #expect(try file.read(20_000, at: 0) == old)
    }
    try file.close()
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  /// - Parameter count: bytes that one thread seals, and several.
  @Test(arguments: [400 << 10, 1 << 20], 1...8)
  func `of what fails half-way the beginning is there, and no slot is lost`(count: Int, number: Int) throws {
    let plan = OneFailure()
    let vault = try fixture.create(files: FileSystem(faults: plan))
    var generator = SeededGenerator(seed: UInt64(number))
    let old = generator.bytes(count + 100)
    let new = generator.bytes(count)
    let file = try vault.createFile(at: path, blockSizeExponent: 12)
    try file.write(old, at: 0)
    try file.sync()
    let end = UInt64((old.count + 4095) & ~4095)
    try file.truncate(to: end)
    let node = try #require(vault.files.node(vault.attributes(at: path).number))
    plan.fail(number)
    let outcome = Result { try file.write(new, at: end) }
    plan.fail(0)
    let grown = Int(try file.attributes.byteCount - end)
    #expect(try file.read(count + 1, at: end) == Array(new[..<grown]))
    #expect(grown.isMultiple(of: 4096))
    switch outcome {
    case .success: #expect(grown == count)
    case .failure: #expect(grown < count && (grown > 0 || number == 1 || count >= FileNode.parallelByteCount))
    }
    // A write before some of what the file has fails as a whole or in part: each block is the old one or the new.
    plan.fail(number)
    _ = try? file.write(new, at: 0)
    plan.fail(0)
    let mixed = try file.read(count, at: 0)
    for start in stride(from: 0, to: count, by: 4096) {
      let block = Array(mixed[start..<(start + 4096)])
      #expect(block == Array(new[start..<(start + 4096)]) || block == Array(old[start..<(start + 4096)]))
    }
    try file.truncate(to: end)
    try file.write(old, at: 0)
    try file.sync()
    try file.write(old, at: 0)
    try file.sync()
    #expect(try file.read(old.count, at: 0) == old)
    try vault.commit()
    // All slots that were taken meanwhile are used or free.
    var slots = node.state.withLock { _ in node.slots }
    let free = slots.takeAllFree().reduce(0) { $0 + UInt64($1.count) }
    #expect(slots.used + free == slots.reach)
    try file.close()
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
