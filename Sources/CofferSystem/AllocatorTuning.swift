internal import CCoffer

/// How a program that moves much data treats the allocator.
public enum AllocatorTuning {
  /// The cipher's library takes two buffers for each block and gives them back. By default the C library returns them to
  /// the system each time in threads, and maps each one of 128 KiB and more anew; the next one is then zeroed page by
  /// page again. That costs as much as the cipher for a block of 64 KiB, and ten times as much for one of 256 KiB.
  ///
  /// All blocks are served, up to 1 MiB. Our own large buffers would be kept as well, in each thread's area; they are not
  /// the allocator's (``TransferMemory``).
  ///
  /// Each area keeps what one phase of the work freed until another happens to use it, half a MiB of it in a transfer. Two
  /// threads that open blocks from one area wait for each other at each block, though, and are then slower than one. So
  /// there is an area for the first thread and one for each processor, up to the four that transfers use.
  public static func keepFreedBlocks(processors: Int) {
    coffer_keep_freed_memory(5 << 19, 1100 << 10, Int32(1 + min(4, max(1, processors))))
  }

  /// From here on the allocator writes over what is freed, so that what the language and its libraries copied of a secret
  /// does not stay. Before any secret is in memory. The C library leaves out blocks of up to a KiB that a thread keeps
  /// for itself, or of 56 bytes (``ProcessHardening/leavingNoCopies``): keys are in ``SecretBytes`` or in types that clear
  /// themselves, and content is overwritten by whoever has it.
  public static func overwriteFreedBlocks() { coffer_overwrite_freed_memory(0x5a) }
}
