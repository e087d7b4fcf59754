import CofferCrypto
import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Glibc
import Synchronization
import Testing

/// RNCryptor's format in and out of a vault: whole, or nothing of it.
@Suite struct RNCryptorTests {
  /// Around every boundary: blocks of the cipher, the inline limit, runs of blocks with the 16 and 32 bytes held back.
  static let sizes =
    Array(0...49) + [
      4079, 4080, 4081, 4095, 4096, 4097, 4111, 4112, 4113, 262_127, 262_128, 262_129, 262_143, 262_144, 262_145,
      524_272, 524_288, 4_194_287, 4_194_305,
    ]

  let fixture: VaultFixture
  let keys: RNCryptorSecret

  init() throws {
    fixture = try VaultFixture()
    keys = try RNCryptorSecret.keys(RNCryptorKeys(file: SecretBytes(count: 64) { Randomness.fill($0) }))
  }

  @Test func `every size goes in and out, from a file and from a stream in pieces of any size`() throws {
    let vault = try fixture.create()
    for size in Self.sizes {
      var generator = SeededGenerator(seed: UInt64(size))
      let bytes = generator.bytes(size)
      let data = try sealed(bytes)
      for (name, source) in [("file", try file(data)), ("stream", try stream(data, &generator))] {
        let path = try VaultPath("\(name) \(size)")
        let attributes = try vault.importFile(try encrypted(source), to: path)
        #expect(attributes.byteCount == UInt64(size))
        #expect(try vault.contents(of: path) == bytes, "\(name) \(size)")
      }
      let output = try FileSystem().open(fixture.folder("out"), [.readWrite, .create, .truncate])
      try vault.snapshot(of: VaultPath("file \(size)")).exportRNCryptor(to: output, secret: keys)
      let exported = try FileSystem().open(fixture.folder("out"), .readOnly)
      try vault.importFile(try encrypted(exported), to: VaultPath("again"), replacing: true)
      #expect(try vault.contents(of: VaultPath("again")) == bytes, "\(size)")
    }
    try vault.close()
    let reopened = try fixture.open()
    for size in Self.sizes {
      var generator = SeededGenerator(seed: UInt64(size))
      #expect(try reopened.contents(of: VaultPath("stream \(size)")) == generator.bytes(size))
    }
    #expect(try reopened.verify(isDeep: true).isClean)
    try reopened.close()
  }

  @Test func `random sizes go in and out, with a password as well`() throws {
    let vault = try fixture.create()
    let password = RNCryptorSecret.password(VaultFixture.passcode("pä🔑ss"))
    try Effort.rounds(12) { seed in
      var generator = SeededGenerator(seed: seed)
      let bytes = generator.bytes(Int.random(in: 0...(6 << 20), using: &generator))
      let secret = seed.isMultiple(of: 2) ? keys : password
      let path = try VaultPath("file")
      try vault.importFile(
        try encrypted(try stream(sealed(bytes, secret), &generator), secret), to: path, replacing: true)
      #expect(try vault.contents(of: path) == bytes, "seed \(seed)")
    }
    try vault.close()
  }

  @Test func `every changed byte, every cut and everything added is refused, and nothing stays`() throws {
    // One that lies in its record, and one that has an object.
    for size in [40, 5000, 600_000] {
      var generator = SeededGenerator(seed: UInt64(size))
      let data = try sealed(generator.bytes(size))
      let vault = try fixture.create()
      try vault.importFile(fixture.source([1, 2, 3]), to: VaultPath("kept"))
      try vault.commit()
      let before = objects()
      // All places of a small one; of a larger one those where something begins or ends, and some between.
      let places =
        size < 100
        ? Array(data.indices)
        : Array(0..<20) + Array((data.count - 50)..<data.count)
          + (0..<12).map { _ in Int.random(in: data.indices, using: &generator) }
      for place in places {
        var changed = data
        changed[place] ^= 1 << Int.random(in: 0..<8, using: &generator)
        try refuse(changed, vault, "byte \(place) of \(size)")
        try refuse(Array(data.prefix(place)), vault, "cut to \(place) of \(size)")
      }
      for count in size < 100 ? Array(1...33) : [1, 16, 32, 48] {
        try refuse(data + generator.bytes(count), vault, "\(count) bytes more")
      }
      #expect(objects() == before)
      try vault.close()
      let reopened = try fixture.open()
      #expect(try reopened.list(.root).map(\.name) == [Array("kept".utf8)])
      #expect(try reopened.contents(of: VaultPath("kept")) == [1, 2, 3])
      #expect(objects() == before)
      #expect(try reopened.verify(isDeep: true).isClean)
      try reopened.close()
      try FileManager.default.removeItem(atPath: fixture.vaultPath)
    }
  }

  @Test func `what is there already stays when the new one is not genuine`() throws {
    let vault = try fixture.create()
    let path = try VaultPath("file")
    try vault.importFile(fixture.source([7]), to: path)
    var data = try sealed([UInt8](repeating: 1, count: 1_000_000))
    data[data.count - 1] ^= 1
    #expect(throws: VaultError.rncryptor(.notAuthentic)) {
      try vault.importFile(try encrypted(file(data)), to: path, replacing: true)
    }
    #expect(try vault.contents(of: path) == [7])
    try vault.close()
  }

  @Test func `an import that is stopped leaves nothing`() throws {
    let vault = try fixture.create()
    let before = objects()
    let data = try sealed([UInt8](repeating: 1, count: 3_000_000))
    let stopped = StopSign()
    let control = TransferControl(progress: { _ in stopped.isUp = true }, isCancelled: { stopped.isUp })
    #expect(throws: VaultError.cancelled) {
      try vault.importFile(try encrypted(file(data)), to: VaultPath("file"), control: control)
    }
    #expect(try vault.list(.root).isEmpty)
    #expect(objects() == before)
    try vault.close()
  }

  @Test func `an export that is stopped throws, and its part is not taken for the whole`() throws {
    let vault = try fixture.create()
    try vault.importFile(fixture.source([UInt8](repeating: 3, count: 1_000_000)), to: VaultPath("file"))
    let stopped = StopSign()
    let output = try FileSystem().open(fixture.folder("out"), [.readWrite, .create, .truncate])
    let control = TransferControl(progress: { _ in stopped.isUp = true }, isCancelled: { stopped.isUp })
    #expect(throws: VaultError.cancelled) {
      try vault.snapshot(of: VaultPath("file")).exportRNCryptor(to: output, secret: keys, control: control)
    }
    let part = try FileSystem().open(fixture.folder("out"), .readOnly)
    #expect(throws: VaultError.rncryptor(.notAuthentic)) {
      try vault.importFile(try encrypted(part), to: VaultPath("part"))
    }
    try vault.close()
  }

  // MARK: Data

  private func refuse(
    _ data: [UInt8], _ vault: Vault, _ what: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    do {
      try vault.importFile(try encrypted(file(data)), to: VaultPath("refused"))
      Issue.record("\(what) was taken", sourceLocation: sourceLocation)
    } catch VaultError.rncryptor {
      #expect(throws: VaultError.notFound, sourceLocation: sourceLocation) {
        try vault.attributes(at: VaultPath("refused"))
      }
    }
  }

  private func encrypted(_ descriptor: OwnedDescriptor, _ secret: RNCryptorSecret? = nil) throws -> ImportSource {
    ImportSource(
      descriptor: descriptor, decoder: try RNCryptorOpener(secret: secret ?? keys), permissions: 0o600, modified: nil)
  }

  private func sealed(_ bytes: [UInt8], _ secret: RNCryptorSecret? = nil) throws -> [UInt8] {
    var sealer = try RNCryptorSealer(secret: secret ?? keys)
    var buffer = bytes + [UInt8](repeating: 0, count: RNCryptorSealer.paddingByteCount)
    let count = buffer.withUnsafeMutableBytes { sealer.seal($0, count: bytes.count, isLast: true) }
    return sealer.header + buffer[..<count] + sealer.tag()
  }

  private func file(_ bytes: [UInt8]) throws -> OwnedDescriptor {
    let writer = try FileSystem().open(fixture.folder("data"), [.readWrite, .create, .truncate])
    try writer.writeAll(bytes)
    return try FileSystem().open(fixture.folder("data"), .readOnly)
  }

  /// A pipe that the bytes come through in pieces of any size.
  private func stream(_ bytes: [UInt8], _ generator: inout SeededGenerator) throws -> OwnedDescriptor {
    let pipe = Pipe()
    let seed = generator.next()
    let writer = pipe.fileHandleForWriting
    let largest = bytes.count < 10_000 ? 40 : 100_000
    Thread {
      var own = SeededGenerator(seed: seed)
      var rest = bytes[...]
      while !rest.isEmpty {
        let piece = rest.prefix(Int.random(in: 1...largest, using: &own))
        rest = rest.dropFirst(piece.count)
        guard (try? writer.write(contentsOf: piece)) != nil else { return }
      }
      try? writer.close()
    }.start()
    return OwnedDescriptor(adopting: dup(pipe.fileHandleForReading.fileDescriptor))
  }

  private func objects() -> [String] {
    let found = FileManager.default.enumerator(atPath: fixture.vaultPath + "/objects")?.allObjects as? [String] ?? []
    var isFolder: ObjCBool = false
    return found.filter {
      FileManager.default.fileExists(atPath: fixture.vaultPath + "/objects/" + $0, isDirectory: &isFolder)
        && !isFolder.boolValue
    }.sorted()
  }
}

/// Raised by one thread, seen by others.
private final class StopSign: Sendable {
  private let state = Mutex(false)
  var isUp: Bool {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}
