internal import CCoffer

/// How a program that has secrets, and moves much data, treats the allocator.
public enum AllocatorTuning {
  /// Buffers of up to a MiB come from the allocator's areas, where they are written over when they are freed
  /// (``overwriteFreedBlocks()``): by default those of 128 KiB and more are mapped one by one, and go back to the system as they are.
  /// And of what was freed little is kept, whatever was freed: by default the largest such buffer decides from then on
  /// how much each area keeps (mallopt(3), M_MMAP_THRESHOLD).
  ///
  /// What one phase of the work freed in one area is not found in another, so that each costs a transfer about a MiB more at its peak.
  /// There are two, which all threads share; with three, no row of a mount's was faster on two processors. Our own large buffers would be
  /// kept in each of them as well; they are not the allocator's (``TransferMemory``).
  ///
  /// It makes nothing faster, since blocks are sealed and opened from buffer to buffer. Of glibc alone: elsewhere nothing happens.
  public static func keepFreedBlocks() {
    coffer_keep_freed_memory(5 << 19, 1100 << 10, 2)
  }

  /// From here on the allocator writes over what is freed, so that what the language and its libraries copied of a secret
  /// does not stay. Before any secret is in memory. The C library leaves out blocks of up to a KiB that a thread keeps
  /// for itself, or of 56 bytes (``ProcessHardening/leavingNoCopies``): keys are in ``SecretBytes`` or in types that clear
  /// themselves, and content is overwritten by whoever has it.
  public static func overwriteFreedBlocks() { coffer_overwrite_freed_memory(0x5a) }
}
