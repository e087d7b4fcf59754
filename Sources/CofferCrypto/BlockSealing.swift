internal import CofferSystem
internal import Crypto
internal import Foundation

/// The nonce and tag of one sealed block. They are kept in an authenticated record, apart from the ciphertext.
public struct BlockSeal: Hashable, Sendable {
  public static let byteCount = Sealing.overhead
  // Words rather than an array: a file of a terabyte has millions of these, and none may cost an allocation.
  private let first: UInt64
  private let second: UInt64
  private let third: UInt64
  private let last: UInt32

  /// Nil unless there are 28 bytes: 12 of nonce followed by 16 of tag.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    var words: (UInt64, UInt64, UInt64, UInt32) = (0, 0, 0, 0)
    for (index, byte) in bytes.enumerated() {
      switch index / 8 {
      case 0: words.0 = words.0 << 8 | UInt64(byte)
      case 1: words.1 = words.1 << 8 | UInt64(byte)
      case 2: words.2 = words.2 << 8 | UInt64(byte)
      default: words.3 = words.3 << 8 | UInt32(byte)
      }
    }
    (first, second, third, last) = words
  }

  /// 12 bytes of nonce followed by 16 of tag.
  public var bytes: [UInt8] {
    first.bigEndianBytes + second.bigEndianBytes + third.bigEndianBytes + last.bigEndianBytes
  }
}

/// Seals and opens the blocks of one page of a file's map with AES-256-GCM and random nonces, buffer to buffer.
///
/// One key serves at most 64 block positions, so the 2³² values that random nonces allow are not reached in practice.
public struct BlockSealer: Sendable {
  private let key: SecretKey
  private let context: [UInt8]

  /// - Parameters:
  ///   - fileKey: the file's own key.
  ///   - page: the map page whose blocks are sealed; each page has a key of its own.
  ///   - context: what all blocks of the file are bound to; the block's index is appended to it.
  public init(fileKey: SecretKey, page: UInt64, context: [UInt8]) {
    key = fileKey.derived("blocks", context: page.bigEndianBytes)
    self.context = context
  }

  /// Seals `plaintext` into `ciphertext`, which has the same count.
  public func seal(
    _ plaintext: UnsafeRawBufferPointer, block: UInt64, into ciphertext: UnsafeMutableRawBufferPointer
  ) throws(CryptoError) -> BlockSeal {
    precondition(plaintext.count == ciphertext.count)
    do {
      let box = try AES.GCM.seal(plaintext, using: key.key, authenticating: context + block.bigEndianBytes)
      box.ciphertext.withUnsafeBytes { ciphertext.copyMemory(from: $0) }
      guard let seal = BlockSeal(bytes: Array(box.nonce) + box.tag) else { throw CryptoError.invalid("seal") }
      return seal
    } catch {
      throw .invalid("block")
    }
  }

  /// Opens `ciphertext` into `plaintext`, which has the same count.
  ///
  /// Throws `CryptoError.notAuthentic`, and writes nothing, unless it is the block that `seal` belongs to.
  public func open(
    _ ciphertext: UnsafeRawBufferPointer, block: UInt64, seal: BlockSeal, into plaintext: UnsafeMutableRawBufferPointer
  ) throws(CryptoError) {
    precondition(plaintext.count == ciphertext.count)
    do {
      let bytes = seal.bytes
      let box = try AES.GCM.SealedBox(
        nonce: AES.GCM.Nonce(data: bytes.prefix(Sealing.nonceByteCount)), ciphertext: ciphertext,
        tag: bytes.suffix(Sealing.tagByteCount))
      let opened = try AES.GCM.open(box, using: key.key, authenticating: context + block.bigEndianBytes)
      opened.withUnsafeBytes { plaintext.copyMemory(from: $0) }
    } catch {
      throw .notAuthentic
    }
  }
}
