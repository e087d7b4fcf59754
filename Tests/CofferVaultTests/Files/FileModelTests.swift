import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// Random operations on files and on a model of them.
@Suite struct FileModelTests {
  static let seedCount = ProcessInfo.processInfo.environment["COFFER_SEEDS"].flatMap { Int($0) } ?? 120

  @Test func `files do what the model does`() throws {
    // One test for all seeds, in as many threads as there are processors.
    let failed = FailedSeeds()
    DispatchQueue.concurrentPerform(iterations: Self.seedCount) { seed in
      do {
        let run = try Run(seed: seed)
        try run.go()
      } catch {
        failed.add("seed \(seed): \(error)")
      }
    }
    #expect(failed.all.isEmpty, "\(failed.all.prefix(5).joined(separator: "\n"))")
  }

  private final class FailedSeeds: @unchecked Sendable {
    private let lock = NSLock()
    private(set) var all: [String] = []
    func add(_ text: String) {
      lock.lock()
      defer { lock.unlock() }
      all.append(text)
    }
  }

  private struct Mismatch: Error, CustomStringConvertible {
    let description: String
  }

  /// One file: its model, its handles, and snapshots with what they must show.
  private final class File {
    let path: VaultPath
    let exponent: UInt8?
    var model = ContentModel()
    var handles: [OpenFile] = []
    var snapshots: [(FileSnapshot, ContentModel)] = []
    var isUnlinked = false
    var isNew = true

    init(path: VaultPath, exponent: UInt8?) {
      self.path = path
      self.exponent = exponent
    }
  }

  private final class Run {
    let fixture: VaultFixture
    var vault: Vault
    var generator: SeededGenerator
    var files: [File] = []
    var step = 0
    var made = 0
    var last = ""

    init(seed: Int) throws {
      fixture = try VaultFixture()
      vault = try fixture.create()
      generator = SeededGenerator(seed: UInt64(seed))
    }

    func go() throws {
      for _ in 0..<3 { try make() }
      for number in 0..<120 {
        step = number
        let file = files[Int.random(in: 0..<files.count, using: &generator)]
        do {
          try act(on: file)
          try compareSome(file)
        } catch let error as VaultError {
          throw Mismatch(description: "step \(step), \(last): \(error)")
        }
        if files.count < 3 { try make() }
      }
      try reopen()
      for file in files { try compareAll(file) }
      try vault.close()
    }

    func make() throws {
      made += 1
      // Mostly small blocks, so that their borders and those of the map's pages are met.
      let exponent: UInt8? = [12, 12, 12, 13, 16, nil].randomElement(using: &generator) ?? nil
      let file = File(path: try VaultPath("f\(made)"), exponent: exponent)
      file.handles.append(try vault.createFile(at: file.path, exclusive: true, blockSizeExponent: exponent))
      files.append(file)
    }

    func handle(_ file: File) throws -> OpenFile {
      if file.handles.isEmpty { file.handles.append(try vault.open(file.path, .writing)) }
      return file.handles[Int.random(in: 0..<file.handles.count, using: &generator)]
    }

    func offset(_ file: File) -> UInt64 {
      let base: UInt64
      switch Int.random(in: 0..<12, using: &generator) {
      case 0..<4: base = UInt64.random(in: 0...max(1, min(file.model.byteCount, 600_000)), using: &generator)
      case 4..<6: base = file.model.byteCount
      case 6: base = 4096
      case 7: base = UInt64.random(in: 0..<20, using: &generator) * 4096
      // Around the border of a page of the map.
      case 8: base = 64 * 4096
      case 9: base = UInt64.random(in: 0..<3, using: &generator) * 64 * 8192
      case 10: base = UInt64.random(in: 1..<5, using: &generator) << 40
      // Around the border of a group of pages.
      default: base = 4096 * 4096
      }
      let shift = Int64.random(in: -2...2, using: &generator)
      return UInt64(max(0, Int64(base) + shift * (Bool.random(using: &generator) ? 1 : 1000)))
    }

    func length() -> Int {
      switch Int.random(in: 0..<8, using: &generator) {
      case 0: 1
      case 1: 4096
      case 2: Int.random(in: 0..<4000, using: &generator)
      case 3: Int.random(in: 0..<30_000, using: &generator)
      case 4: 8192 * Int.random(in: 1..<5, using: &generator)
      case 5: Int.random(in: 0..<300_000, using: &generator)
      default: Int.random(in: 1..<200, using: &generator)
      }
    }

    func act(on file: File) throws {
      switch Int.random(in: 0..<100, using: &generator) {
      case 0..<30:
        let (start, bytes) = (offset(file), generator.bytes(length()))
        last = "write \(start) \(bytes.count)"
        let handle = try handle(file)
        try bytes.withUnsafeBytes { raw in Result { try handle.write(raw, at: start) } }.get()
        file.model.write(bytes, at: start)
      case 30..<42:
        let bytes = generator.bytes(length())
        last = "append \(bytes.count)"
        let handle = try handle(file)
        let place = try handle.append(bytes)
        guard place == (file.model.byteCount, bytes.count) else {
          throw Mismatch(description: "step \(step): appended \(place)")
        }
        file.model.write(bytes, at: place.offset)
      case 42..<52:
        let end = Bool.random(using: &generator) ? offset(file) : UInt64.random(in: 0...5000, using: &generator)
        last = "truncate \(end)"
        try handle(file).truncate(to: end)
        file.model.truncate(to: end)
      case 52..<62:
        let start = offset(file)
        let range = start..<(start + UInt64(Bool.random(using: &generator) ? length() : 300_000))
        last = "punch \(range)"
        try handle(file).punchHole(range)
        file.model.punch(range)
      case 62..<68:
        last = "sync"
        try handle(file).sync()
      case 68..<74:
        last = "snapshot"
        file.snapshots.append((try handle(file).snapshot(), file.model))
      case 74..<80:
        last = "drop a snapshot"
        if !file.snapshots.isEmpty {
          file.snapshots.remove(at: Int.random(in: 0..<file.snapshots.count, using: &generator))
        }
      case 80..<84:
        last = "commit"
        try vault.commit()
      case 84..<88:
        last = "close"
        if let handle = file.handles.popLast() { try handle.close() }
        if file.isUnlinked, file.handles.isEmpty { files.removeAll { $0 === file } }
      case 88..<91:
        last = "open"
        if !file.isUnlinked { file.handles.append(try vault.open(file.path, .writing)) }
      case 91..<93:
        last = "unlink"
        if !file.isUnlinked {
          try vault.remove(file.path)
          file.isUnlinked = true
          if file.handles.isEmpty { files.removeAll { $0 === file } }
        }
      case 93..<96:
        last = "search"
        try search(file, from: offset(file))
      default:
        last = "reopen"
        try reopen()
      }
    }

    func reopen() throws {
      files.removeAll { $0.isUnlinked }
      for file in files {
        for handle in file.handles { try handle.close() }
        file.handles = []
        file.snapshots = []
      }
      try vault.close()
      vault = try fixture.open()
      let objects = try TamperTests.objects(fixture.vaultPath).count
      guard objects <= files.count else { throw Mismatch(description: "step \(step): \(objects) objects are left") }
      if files.isEmpty { try make() }
    }

    func search(_ file: File, from start: UInt64) throws {
      let handle = try handle(file)
      let data = try handle.nextData(from: start)
      let nonzero = file.model.firstNonzero(from: start)
      guard data.map({ $0 >= start && $0 < file.model.byteCount }) ?? true, nonzero == nil || data != nil,
        nonzero.map({ $0 >= data ?? 0 }) ?? true
      else { throw Mismatch(description: "step \(step): data at \(data.map(String.init) ?? "none") from \(start)") }
      let hole = try handle.nextHole(from: start)
      guard hole == file.model.byteCount || (hole >= start && hole < file.model.byteCount) else {
        throw Mismatch(description: "step \(step): hole at \(hole) from \(start)")
      }
      if hole < file.model.byteCount, let after = file.model.firstNonzero(from: hole),
        try handle.nextData(from: hole).map({ $0 > after }) ?? true
      {
        throw Mismatch(description: "step \(step): the hole at \(hole) has data")
      }
    }

    func compareSome(_ file: File) throws {
      guard files.contains(where: { $0 === file }), !(file.isUnlinked && file.handles.isEmpty) else { return }
      let handle = try handle(file)
      let attributes = try handle.attributes
      guard attributes.byteCount == file.model.byteCount else {
        throw Mismatch(description: "step \(step), \(last): \(attributes.byteCount), not \(file.model.byteCount) bytes")
      }
      for _ in 0..<3 {
        let (start, count) = (offset(file), length())
        try expect(file.model, start, count) { try handle.read(at: start, into: $0) }
        if let (snapshot, model) = file.snapshots.randomElement(using: &generator) {
          guard snapshot.byteCount == model.byteCount else {
            throw Mismatch(description: "step \(step): a snapshot's size")
          }
          try expect(model, start, count) { try snapshot.read(at: start, into: $0) }
        }
      }
      if step.isMultiple(of: 20) { try compareAll(file) }
    }

    func compareAll(_ file: File) throws {
      let handle = try handle(file)
      for (start, count) in [(0, 900_000), (4096 * 4096 - 5000, 700_000), (1 << 40 - 5000, 400_000)] {
        try expect(file.model, UInt64(start), count) { try handle.read(at: UInt64(start), into: $0) }
        for (snapshot, model) in file.snapshots {
          try expect(model, UInt64(start), count) { try snapshot.read(at: UInt64(start), into: $0) }
        }
      }
      if !file.isUnlinked {
        guard try vault.attributes(at: file.path).byteCount == file.model.byteCount else {
          throw Mismatch(description: "step \(step), \(last): the name's size")
        }
      }
    }

    func expect(
      _ model: ContentModel, _ start: UInt64, _ count: Int, read: (UnsafeMutableRawBufferPointer) throws -> Int
    ) throws {
      var found = [UInt8](repeating: 0xaa, count: count)
      let length = try found.withUnsafeMutableBytes { try read($0) }
      let expected = model.read(at: start, count: count)
      guard length == expected.count else {
        throw Mismatch(description: "step \(step), \(last): read \(length) of \(expected.count) bytes at \(start)")
      }
      found.removeLast(count - length)
      if found == expected { return }
      if let wrong = expected.indices.first(where: { found[$0] != expected[$0] }) {
        throw Mismatch(description: "step \(step), \(last): byte \(start + UInt64(wrong)) is wrong")
      }
    }
  }
}
