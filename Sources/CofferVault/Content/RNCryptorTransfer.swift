public import CofferCrypto
public import CofferFiles
public import CofferSystem
internal import Foundation

/// RNCryptor's format on the way in.
extension RNCryptorOpener: ContentDecoder {
  public func portion(
    into buffer: UnsafeMutableRawBufferPointer, from read: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> EncodedPortion {
    let portion = try next(into: buffer, from: read)
    return EncodedPortion(byteCount: portion.byteCount) { try portion.open($0) }
  }
}

extension FileSnapshot {
  /// Bytes that are read, encrypted and written at a time: whole blocks of the cipher.
  private static let portionByteCount = 256 << 10

  /// Writes the whole content to `output` in RNCryptor's format, version 3, in order.
  ///
  /// Each of the vault's blocks is verified before it is encrypted. A failure leaves a part, which nobody can take for the
  /// whole, because the code at its end is missing.
  public func exportRNCryptor(
    to output: OwnedDescriptor, secret: RNCryptorSecret, control: TransferControl = TransferControl()
  ) throws(VaultError) {
    try VaultError.catching {
      var sealer = try RNCryptorSealer(secret: secret)
      try output.writeAll(sealer.header)
      let buffer = TransferBuffer(count: Self.portionByteCount + RNCryptorSealer.paddingByteCount)
      let plaintext = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<Self.portionByteCount])
      var offset: UInt64 = 0
      var isLast = false
      while !isLast {
        if control.isCancelled() { throw VaultError.cancelled }
        let count = try self.read(at: offset, into: plaintext)
        offset += UInt64(count)
        isLast = offset == self.byteCount
        let sealed = sealer.seal(buffer.bytes, count: count, isLast: isLast)
        try output.writeAll(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<sealed]))
        control.progress(count)
      }
      try output.writeAll(sealer.tag())
    }
  }
}
