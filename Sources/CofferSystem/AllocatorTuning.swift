internal import CCoffer

/// How a program that moves much data treats the allocator.
public enum AllocatorTuning {
  /// The cipher's library takes a buffer for each block and gives it back. By default the C library returns it to the
  /// system each time in threads, and the next one is zeroed page by page again, which costs as much as the cipher.
  public static func keepFreedBlocks() { coffer_keep_freed_memory(2 << 20) }
}
