internal import CofferSystem

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

  fileprivate init(nonce: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer) {
    precondition(nonce.count == Sealing.nonceByteCount && tag.count == Sealing.tagByteCount)
    self = withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 8) { bytes in
      bytes.copyMemory(from: nonce)
      UnsafeMutableRawBufferPointer(rebasing: bytes[nonce.count...]).copyMemory(from: tag)
      return Self(reading: UnsafeRawBufferPointer(bytes))
    }
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
    try seal(1, from: block) { _ in (plaintext, ciphertext) }[0]
  }

  /// Seals blocks that follow one another; returns their seals.
  ///
  /// - Parameter block: where the plaintext of one of them is, by its place among them, and where its ciphertext goes, which has
  ///   the same count.
  public func seal(
    _ count: Int, from first: UInt64,
    _ block: (Int) -> (plaintext: UnsafeRawBufferPointer, ciphertext: UnsafeMutableRawBufferPointer)
  ) throws(CryptoError) -> [BlockSeal] {
    do {
      return try withUnsafeTemporaryAllocation(byteCount: count * BlockSeal.byteCount, alignment: 8) { seals in
        // One call of the system draws all nonces.
        let nonces = UnsafeMutableRawBufferPointer(rebasing: seals[..<(count * Sealing.nonceByteCount)])
        let tags = UnsafeMutableRawBufferPointer(rebasing: seals[nonces.count...])
        Randomness.fill(nonces)
        try withContext { context in
          try BufferCipher.with(key) { cipher in
            for position in 0..<count {
              let (plaintext, ciphertext) = block(position)
              try cipher.seal(
                plaintext, nonce: UnsafeRawBufferPointer(nonces.part(position, of: Sealing.nonceByteCount)),
                authenticating: context(first + UInt64(position)), into: ciphertext,
                tag: tags.part(position, of: Sealing.tagByteCount))
            }
          }
        }
        return (0..<count).map { position in
          BlockSeal(
            nonce: UnsafeRawBufferPointer(nonces.part(position, of: Sealing.nonceByteCount)),
            tag: UnsafeRawBufferPointer(tags.part(position, of: Sealing.tagByteCount)))
        }
      }
    } catch {
      throw .invalid("block")
    }
  }

  /// Opens `ciphertext` into `plaintext`, which has the same count and may be the same memory.
  ///
  /// Throws `CryptoError.notAuthentic`, and leaves zeros, unless it is the block that `seal` belongs to.
  public func open(
    _ ciphertext: UnsafeRawBufferPointer, block: UInt64, seal: BlockSeal, into plaintext: UnsafeMutableRawBufferPointer
  ) throws(CryptoError) {
    guard try open(1, from: block, { _ in (ciphertext, seal, plaintext) }) == 1 else { throw .notAuthentic }
  }

  /// Opens blocks that follow one another, until one is not the block that its seal belongs to, which leaves zeros; returns how
  /// many are open.
  ///
  /// - Parameter block: where the ciphertext of one of them is, by its place among them, its seal, and where its plaintext goes,
  ///   which has the same count and may be the same memory.
  public func open(
    _ count: Int, from first: UInt64,
    _ block: (Int) -> (
      ciphertext: UnsafeRawBufferPointer, seal: BlockSeal, plaintext: UnsafeMutableRawBufferPointer
    )
  ) throws(CryptoError) -> Int {
    do {
      return try withContext { context in
        try BufferCipher.with(key) { cipher in
          for position in 0..<count {
            let (ciphertext, seal, plaintext) = block(position)
            do {
              try seal.withParts { nonce, tag in
                try cipher.open(
                  ciphertext, nonce: nonce, tag: tag, authenticating: context(first + UInt64(position)), into: plaintext
                )
              }
            } catch CryptoError.notAuthentic {
              return position
            }
          }
          return count
        }
      }
    } catch {
      throw .invalid("block")
    }
  }

  /// Lends what a block is bound to, by its index: the file's context followed by that.
  private func withContext<Result>(_ body: ((UInt64) -> UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: context.count + 8, alignment: 8) { bytes in
      bytes.copyBytes(from: context)
      return try body { block in
        bytes.storeBytes(of: block.bigEndian, toByteOffset: context.count, as: UInt64.self)
        return UnsafeRawBufferPointer(bytes)
      }
    }
  }
}

extension UnsafeMutableRawBufferPointer {
  /// One of equal parts that lie side by side.
  fileprivate func part(_ position: Int, of byteCount: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: self[(position * byteCount)..<((position + 1) * byteCount)])
  }
}
