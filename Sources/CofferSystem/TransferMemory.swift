internal import CCoffer

/// Memory that content passes through. What is large is mapped, and goes back to the system when it is freed: the
/// allocator, which keeps what it gets back for the cipher's library (``AllocatorTuning``), never has it.
public enum TransferMemory {
  /// Bytes of the smallest buffer with pages of its own.
  private static let mappedByteCount = 288 << 10

  /// New memory that starts at a page. What is in it is undefined. The process ends where there is none.
  public static func allocate(byteCount: Int) -> UnsafeMutableRawBufferPointer {
    guard byteCount >= mappedByteCount else { return .allocate(byteCount: byteCount, alignment: 4096) }
    guard let start = coffer_map_memory(byteCount) else { fatalError("there is no memory left") }
    return UnsafeMutableRawBufferPointer(start: start, count: byteCount)
  }

  /// Gives back what ``allocate(byteCount:)`` returned, whole.
  public static func free(_ memory: UnsafeMutableRawBufferPointer) {
    guard memory.count >= mappedByteCount else { return memory.deallocate() }
    coffer_unmap_memory(memory.baseAddress, memory.count)
  }
}
