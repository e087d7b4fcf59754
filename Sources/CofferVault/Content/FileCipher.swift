internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferSystem

/// Seals and opens one file's content under the file's own key.
struct FileCipher: Sendable {
  let key: SecretKey
  private let context: [UInt8]
  /// What the content needs first, where it was derived together with what proves the key.
  private var first: First?
  /// The key of the map pages that were not sealed anew yet, while the file's key is being changed.
  private var earlier: Earlier?

  private enum First: Sendable {
    case inline(SecretKey)
    case page(BlockSealer)
  }

  /// What is opened first.
  enum Part { case nothing, inline, firstPage }

  private struct Earlier: Sendable {
    let key: SecretKey
    let firstPage: UInt64
  }

  init(key: SecretKey, vault: VaultID, inode: InodeNumber) {
    self.key = key
    context = Array("coffer content \(VaultFormat.version)".utf8) + vault.bytes + inode.value.bigEndianBytes
  }

  /// Of a file whose key others have derived something from.
  init(key: SecretKey, _ derivation: KeyDerivation, vault: VaultID, inode: InodeNumber, first part: Part) {
    self.init(key: key, vault: vault, inode: inode)
    switch part {
    case .nothing: break
    case .inline: first = .inline(derivation.key(Self.inlineLabel))
    case .firstPage: first = .page(BlockSealer(derivation, page: 0, context: context))
    }
  }

  func sealer(page: UInt64) -> BlockSealer {
    if page == 0, earlier == nil, case .page(let sealer) = first { return sealer }
    let key = earlier.flatMap { page >= $0.firstPage ? $0.key : nil } ?? key
    return BlockSealer(fileKey: key, page: page, context: context)
  }

  /// The same, with the map pages from `firstPage` on under an earlier key.
  func with(earlier key: SecretKey, from firstPage: UInt64) -> FileCipher {
    var cipher = self
    cipher.earlier = Earlier(key: key, firstPage: firstPage)
    return cipher
  }

  /// The same, with the pages below `page` under the present key; with nil all of them.
  func rekeyed(upTo page: UInt64?) -> FileCipher {
    var cipher = self
    cipher.earlier = page.flatMap { page in earlier.map { Earlier(key: $0.key, firstPage: page) } }
    return cipher
  }

  /// Seals content for a record.
  func sealInline(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] {
    if bytes.isEmpty { return Self.nothing }
    var padded = Padding.pad(bytes)
    defer { padded.withUnsafeMutableBytes { overwrite($0) } }
    return try Sealing.seal(padded, key: inlineKey, authenticating: context)
  }

  /// Lends the content of a record, which is overwritten afterwards: small buffers the allocator keeps as they are when they
  /// are freed. Throws `damaged` where it is not what was sealed.
  func withInline<Result>(
    _ sealed: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    if sealed == Self.nothing { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
    guard var padded = try? Sealing.open(sealed, key: inlineKey, authenticating: context) else { throw Self.damaged }
    defer { padded.withUnsafeMutableBytes { overwrite($0) } }
    return try padded.withUnsafeBytes { padded in
      guard let bytes = try? Padding.unpad(padded) else { throw Self.damaged }
      return try body(bytes)
    }
  }

  private static let damaged = VaultError.damaged(what: "a file's content")

  private var inlineKey: SecretKey {
    if case .inline(let key) = first { key } else { key.derived(Self.inlineLabel) }
  }

  private static let inlineLabel = "inline"

  /// The content of an empty file: most files are made empty. The record, which is authenticated and sealed, says all that
  /// there is to it; as long as what is sealed, so that the record's length does not tell.
  static let nothing = [UInt8](repeating: 0, count: Padding.pad([]).count + Sealing.overhead)
}

/// How the blocks of an object are handed out to workers: runs of blocks that lie in one map page.
struct BlockRuns: Sendable {
  let blockSizeExponent: UInt8
  /// Bytes that one worker holds at a time.
  private static let target = 256 << 10

  var blockSize: Int { 1 << blockSizeExponent }
  /// A power of two that divides the blocks of a page.
  var blocksPerRun: Int { max(1, min(Int(VaultFormat.blocksPerPage), Self.target >> blockSizeExponent)) }
  var byteCount: Int { blocksPerRun << blockSizeExponent }
  var runsPerPage: UInt64 { VaultFormat.blocksPerPage / UInt64(blocksPerRun) }

  func firstBlock(of run: UInt64) -> UInt64 { run * UInt64(blocksPerRun) }
  func page(of run: UInt64) -> UInt64 { run / runsPerPage }
}
