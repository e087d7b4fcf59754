internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferSystem

/// Seals and opens one file's content under the file's own key.
struct FileCipher: Sendable {
  let key: SecretKey
  private let context: [UInt8]
  /// Derived beforehand for a file that is small to begin with, because its content is sealed more than once.
  private let inlineKey: SecretKey?

  init(key: SecretKey, vault: VaultID, inode: InodeNumber, isSmall: Bool = false) {
    self.key = key
    inlineKey = isSmall ? Self.inlineKey(of: key) : nil
    context = Array("coffer content \(VaultFormat.version)".utf8) + vault.bytes + inode.value.bigEndianBytes
  }

  /// The cipher of a stored file. Throws `CryptoError.notAuthentic` where the key is not the one that was committed to.
  init(_ inode: Inode, keys: ClassKeys, vault: VaultID) throws {
    let key = try keys.unwrap(inode.wrappedKey, for: inode.protection)
    guard equalInConstantTime(key.commitment, inode.keyCommitment) else { throw CryptoError.notAuthentic }
    self.init(key: key, vault: vault, inode: inode.number)
  }

  func sealer(page: UInt64) -> BlockSealer { BlockSealer(fileKey: key, page: page, context: context) }

  func sealInline(_ bytes: [UInt8]) throws -> [UInt8] {
    try Sealing.seal(Padding.pad(bytes), key: inlineKey ?? Self.inlineKey(of: key), authenticating: context)
  }

  func sealInline(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] { try sealInline(Array(bytes)) }

  func openInline(_ sealed: [UInt8]) throws -> [UInt8] {
    try Padding.unpad(Sealing.open(sealed, key: inlineKey ?? Self.inlineKey(of: key), authenticating: context))
  }

  private static func inlineKey(of key: SecretKey) -> SecretKey { key.derived("inline") }
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
