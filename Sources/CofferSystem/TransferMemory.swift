internal import CCoffer

/// Memory that content passes through. What is large is mapped, and goes back to the system when it is freed: the
/// allocator, which keeps what it gets back (``AllocatorTuning``), never has it.
public enum TransferMemory {
  /// Bytes of the smallest buffer with pages of its own.
  private static let mappedByteCount = 288 << 10

  /// New memory. What is in it is undefined. The process ends where there is none.
  ///
  /// - Parameter startsAtPage: for what the system copies to or from. Else the allocator need not look for such a place, which
  ///   it does by taking a page more and giving back what is before and behind.
  public static func allocate(byteCount: Int, startsAtPage: Bool = true) -> UnsafeMutableRawBufferPointer {
    guard byteCount >= mappedByteCount else {
      return .allocate(byteCount: byteCount, alignment: startsAtPage ? 4096 : 16)
    }
    guard let start = coffer_map_memory(byteCount) else { fatalError("there is no memory left") }
    return UnsafeMutableRawBufferPointer(start: start, count: byteCount)
  }

  /// Gives back what ``allocate(byteCount:)`` returned, whole.
  public static func free(_ memory: UnsafeMutableRawBufferPointer) {
    guard memory.count >= mappedByteCount else { return memory.deallocate() }
    coffer_unmap_memory(memory.baseAddress, memory.count)
  }
}
