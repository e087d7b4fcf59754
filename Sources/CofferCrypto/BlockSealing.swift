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
    // Nearly every collection lends its bytes.
    let made = bytes.withContiguousStorageIfAvailable { Self(reading: UnsafeRawBufferPointer($0)) }
    self = made ?? Array(bytes).withUnsafeBytes { Self(reading: $0) }
  }

  /// From 28 bytes: 12 of nonce followed by 16 of tag.
  public init(reading bytes: UnsafeRawBufferPointer) {
    precondition(bytes.count == Self.byteCount)
    first = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
    second = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    third = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
    last = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 24, as: UInt32.self))
  }

  /// 12 bytes of nonce followed by 16 of tag.
  public var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, initialized in
      write(to: UnsafeMutableRawBufferPointer(buffer))
      initialized = Self.byteCount
    }
  }

  /// Writes the 28 bytes to the start of `buffer`, which has room for them.
  public func write(to buffer: UnsafeMutableRawBufferPointer) {
    precondition(buffer.count >= Self.byteCount)
    buffer.storeBytes(of: first.bigEndian, toByteOffset: 0, as: UInt64.self)
    buffer.storeBytes(of: second.bigEndian, toByteOffset: 8, as: UInt64.self)
    buffer.storeBytes(of: third.bigEndian, toByteOffset: 16, as: UInt64.self)
    buffer.storeBytes(of: last.bigEndian, toByteOffset: 24, as: UInt32.self)
  }

  /// Lends nonce and tag.
  fileprivate func withParts<Result>(
    _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 8) { bytes in
      write(to: bytes)
      let parts = UnsafeRawBufferPointer(bytes)
      return try body(
        UnsafeRawBufferPointer(rebasing: parts.prefix(Sealing.nonceByteCount)),
        UnsafeRawBufferPointer(rebasing: parts.suffix(Sealing.tagByteCount)))
    }
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
    self.init(KeyDerivation(from: fileKey), page: page, context: context)
  }

  /// - Parameter derivation: from the file's own key.
  public init(_ derivation: KeyDerivation, page: UInt64, context: [UInt8]) {
    key = derivation.key("blocks", context: page.bigEndianBytes)
    self.context = context
  }

  /// Seals `plaintext` into `ciphertext`, which has the same count.
  public func seal(
    _ plaintext: UnsafeRawBufferPointer, block: UInt64, into ciphertext: UnsafeMutableRawBufferPointer
  ) throws(CryptoError) -> BlockSeal {
    precondition(plaintext.count == ciphertext.count)
    let sealed = try seal(plaintext, block: block)
    sealed.withCiphertext { ciphertext.copyMemory(from: $0) }
    return sealed.seal
  }

  /// Seals `plaintext` and lends the ciphertext, which saves a copy where it is written at once.
  public func seal(_ plaintext: UnsafeRawBufferPointer, block: UInt64) throws(CryptoError) -> SealedBlock {
    do {
      let box = try withContext(of: block) { context in
        try clearingStack {
          try AES.GCM.seal(plaintext, using: key.key, nonce: Sealing.randomNonce(), authenticating: context)
        }
      }
      // One look at the whole, because each part on its own is made when it is asked for.
      guard let combined = box.combined else { throw CryptoError.invalid("seal") }
      return SealedBlock(combined)
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
    try open(ciphertext, block: block, seal: seal).withPlaintext { plaintext.copyMemory(from: $0) }
  }

  /// Opens `ciphertext` and lends the plaintext, which saves a copy where it is passed on at once.
  ///
  /// Throws `CryptoError.notAuthentic` unless it is the block that `seal` belongs to.
  public func open(
    _ ciphertext: UnsafeRawBufferPointer, block: UInt64, seal: BlockSeal
  ) throws(CryptoError) -> OpenedBlock {
    do {
      return try opened(box(ciphertext, seal), block)
    } catch {
      throw .notAuthentic
    }
  }

  /// Opens a block whose ciphertext was read into the middle of `frame`, behind ``frameStart`` bytes, where the frame is
  /// ``frameByteCount`` bytes larger than the block. Nonce and tag are put around it, which saves another copy.
  ///
  /// Throws `CryptoError.notAuthentic` unless it is the block that `seal` belongs to.
  public func open(
    framed frame: UnsafeMutableRawBufferPointer, block: UInt64, seal: BlockSeal
  ) throws(CryptoError) -> OpenedBlock {
    precondition(frame.count >= Self.frameByteCount)
    do {
      return try opened(box(framed: frame, seal), block)
    } catch {
      throw .notAuthentic
    }
  }

  public static let frameStart = Sealing.nonceByteCount
  public static let frameByteCount = Sealing.overhead

  private func opened(_ box: AES.GCM.SealedBox, _ block: UInt64) throws -> OpenedBlock {
    OpenedBlock(
      try withContext(of: block) { context in
        try clearingStack { try AES.GCM.open(box, using: key.key, authenticating: context) }
      })
  }

  /// Lends what a block is bound to: the file's context followed by its index.
  private func withContext<Result>(of block: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    try withUnsafeTemporaryAllocation(byteCount: context.count + 8, alignment: 8) { bytes in
      bytes.copyBytes(from: context)
      bytes.storeBytes(of: block.bigEndian, toByteOffset: context.count, as: UInt64.self)
      return try body(UnsafeRawBufferPointer(bytes))
    }
  }

  /// The library's box always holds a copy of its own. Making it from three parts costs three hundred nanoseconds more
  /// than from one, which is worth a second copy of a small block.
  private func box(_ ciphertext: UnsafeRawBufferPointer, _ seal: BlockSeal) throws -> AES.GCM.SealedBox {
    if ciphertext.count <= Self.smallBlock {
      return try withUnsafeTemporaryAllocation(byteCount: ciphertext.count + Self.frameByteCount, alignment: 16) {
        frame in
        UnsafeMutableRawBufferPointer(rebasing: frame[Self.frameStart...]).copyMemory(from: ciphertext)
        return try box(framed: frame, seal)
      }
    }
    return try seal.withParts { nonce, tag in
      try AES.GCM.SealedBox(nonce: AES.GCM.Nonce(data: nonce), ciphertext: ciphertext, tag: tag)
    }
  }

  private func box(framed frame: UnsafeMutableRawBufferPointer, _ seal: BlockSeal) throws -> AES.GCM.SealedBox {
    seal.withParts { nonce, tag in
      frame.copyMemory(from: nonce)
      UnsafeMutableRawBufferPointer(rebasing: frame.suffix(Sealing.tagByteCount)).copyMemory(from: tag)
    }
    return try AES.GCM.SealedBox(combined: UnsafeRawBufferPointer(frame))
  }

  private static let smallBlock = 16 << 10
}

/// A block as it was sealed: its ciphertext where the library left it, and the seal that goes into the map.
public struct SealedBlock: Sendable {
  public let seal: BlockSeal
  /// nonce ‖ ciphertext ‖ tag
  private let combined: Data

  fileprivate init(_ combined: Data) {
    self.combined = combined
    seal = combined.withUnsafeBytes { bytes in
      withUnsafeTemporaryAllocation(byteCount: BlockSeal.byteCount, alignment: 8) { seal in
        let (nonce, tag) = (Sealing.nonceByteCount, Sealing.tagByteCount)
        seal.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(nonce)))
        UnsafeMutableRawBufferPointer(rebasing: seal[nonce...])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.suffix(tag)))
        return BlockSeal(reading: UnsafeRawBufferPointer(seal))
      }
    }
  }

  /// Lends the ciphertext; the pointer must not outlive the call.
  public func withCiphertext<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try combined.withUnsafeBytes { bytes in
      let ciphertext = bytes.dropFirst(Sealing.nonceByteCount).dropLast(Sealing.tagByteCount)
      return try body(UnsafeRawBufferPointer(rebasing: ciphertext))
    }
  }
}

/// A verified block's plaintext where the library left it.
public struct OpenedBlock: Sendable {
  private let plaintext: Data

  fileprivate init(_ plaintext: Data) { self.plaintext = plaintext }

  /// Lends the plaintext; the pointer must not outlive the call.
  public func withPlaintext<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try plaintext.withUnsafeBytes(body)
  }
}
