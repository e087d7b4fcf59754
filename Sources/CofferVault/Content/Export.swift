public import CofferFiles
public import CofferSystem
internal import Synchronization

extension FileSnapshot {
  /// Bytes that one worker opens and writes at a time: whole blocks, and neighbours in a page of the map.
  private static let exportByteCount: UInt64 = 256 << 10

  /// Writes the whole content to `output`: at offsets and on all cores where `isSeekable`, else in order.
  ///
  /// Each block is verified before it is written. A failure leaves a part: write to a temporary name.
  public func export(
    to output: OwnedDescriptor, isSeekable: Bool, control: TransferControl = TransferControl()
  ) throws(VaultError) {
    let next = Atomic<UInt64>(0)
    try VaultError.catching {
      let workers = Workers()
      let body: @Sendable () throws -> Void = {
        let plaintext = TransferBuffer(count: Int(min(Self.exportByteCount, max(1, self.byteCount))))
        while !workers.isStopped {
          if control.isCancelled() { throw VaultError.cancelled }
          let offset = next.wrappingAdd(Self.exportByteCount, ordering: .relaxed).oldValue
          guard offset < self.byteCount else { return }
          let count = try self.read(at: offset, into: plaintext.bytes)
          let bytes = UnsafeRawBufferPointer(rebasing: plaintext.bytes[..<count])
          if isSeekable { try output.writeAll(bytes, at: offset) } else { try output.writeAll(bytes) }
          control.progress(count)
        }
      }
      if isSeekable, byteCount > Self.exportByteCount { try workers.run(body) } else { try body() }
    }
  }
}
