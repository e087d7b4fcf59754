import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVault
import Testing

@Suite struct ContentTests {
  /// Around every boundary: empty, the inline limit, the block sizes, the runs, the map pages.
  static let sizes = [
    0, 1, 3071, 3072, 3073, 4095, 4096, 4097, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 524_288, 1_000_003,
    4_194_304, 4_194_305,
  ]

  @Test(arguments: sizes) func `what was stored comes back, from a file and from a stream`(size: Int) throws {
    let fixture = try VaultFixture()
    var generator = SeededGenerator(seed: UInt64(size))
    let bytes = generator.bytes(size)
    let source = try fixture.source(bytes)
    do {
      let vault = try fixture.create()
      try vault.importFile(source, to: VaultPath("file"))
      let stream = try FileSystem().open(fixture.folder("source"), .readOnly)
      try vault.importFile(
        ImportSource(descriptor: stream, byteCount: nil, permissions: 0o600, modified: nil), to: VaultPath("stream"))
      try vault.close()
    }
    let vault = try fixture.open()
    #expect(try vault.contents(of: VaultPath("file")) == bytes)
    #expect(try vault.contents(of: VaultPath("stream")) == bytes)
    let attributes = try vault.attributes(at: VaultPath("file"))
    #expect(attributes.byteCount == UInt64(size))
    #expect(attributes.permissions == 0o640)
    #expect(attributes.modified == Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_789))
    for isSeekable in [true, false] {
      let output = try FileSystem().open(fixture.folder("out"), [.readWrite, .create, .truncate])
      try vault.snapshot(of: VaultPath("file")).export(to: output, isSeekable: isSeekable)
      var found = [UInt8](repeating: 0, count: size + 1)
      let count = try found.withUnsafeMutableBytes { try output.readFully(at: 0, into: $0) }
      #expect(found[..<count].elementsEqual(bytes))
    }
    try vault.close()
  }

  @Test func `reads at any offset give what was stored there`() throws {
    let fixture = try VaultFixture()
    var generator = SeededGenerator(seed: 7)
    let bytes = generator.bytes(300_001)
    let vault = try fixture.create()
    try vault.importFile(fixture.source(bytes), to: VaultPath("f"))
    let snapshot = try vault.snapshot(of: VaultPath("f"))
    for _ in 0..<300 {
      let offset = Int.random(in: 0...(bytes.count + 10), using: &generator)
      let length = Int.random(in: 0...70_000, using: &generator)
      var buffer = [UInt8](repeating: 0x55, count: length)
      let count = try buffer.withUnsafeMutableBytes { try snapshot.read(at: UInt64(offset), into: $0) }
      let expected = offset < bytes.count ? Array(bytes[offset..<min(bytes.count, offset + length)]) : []
      #expect(Array(buffer[..<count]) == expected)
    }
    try vault.close()
  }
}
