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

  private struct Earlier: Sendable {
    let key: SecretKey
    let firstPage: UInt64
  }

  init(key: SecretKey, vault: VaultID, inode: InodeNumber) {
    self.key = key
    context = Array("coffer content \(VaultFormat.version)".utf8) + vault.bytes + inode.value.bigEndianBytes
  }

  /// Of a file with this content, whose key others have derived something from.
  init(key: SecretKey, _ derivation: KeyDerivation, vault: VaultID, inode: InodeNumber, content: Inode.Content) {
    self.init(key: key, vault: vault, inode: inode)
    switch content {
    case .inline(let sealed) where sealed != Self.nothing: first = .inline(derivation.key(Self.inlineLabel))
    case .object: first = .page(BlockSealer(derivation, page: 0, context: context))
    default: break
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

  func sealInline(_ bytes: [UInt8]) throws -> [UInt8] {
    if bytes.isEmpty { return Self.nothing }
    return try Sealing.seal(Padding.pad(bytes), key: inlineKey, authenticating: context)
  }

  func sealInline(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] { try sealInline(Array(bytes)) }

  func openInline(_ sealed: [UInt8]) throws -> [UInt8] {
    if sealed == Self.nothing { return [] }
    return try Padding.unpad(Sealing.open(sealed, key: inlineKey, authenticating: context))
  }

  private var inlineKey: SecretKey {
    if case .inline(let key) = first { key } else { key.derived(Self.inlineLabel) }
  }

  private static let inlineLabel = "inline"

  /// The content of an empty file: most files are made empty. The record, which is authenticated and sealed, says all that
  /// there is to it; as long as what is sealed, so that the record's length does not tell.
  private static let nothing = [UInt8](repeating: 0, count: Padding.pad([]).count + Sealing.overhead)
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
