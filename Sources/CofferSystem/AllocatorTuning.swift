internal import CCoffer

/// How a program that has secrets treats the allocator.
public enum AllocatorTuning {
  /// From here on the allocator writes over what is freed, so that what the language and its libraries copied of a secret
  /// does not stay. Before any secret is in memory. The C library leaves out blocks of up to a KiB that a thread keeps
  /// for itself, or of 56 bytes (``ProcessHardening/leavingNoCopies``): keys are in ``SecretBytes`` or in types that clear
  /// themselves, and content is overwritten by whoever has it.
  public static func overwriteFreedBlocks() { coffer_overwrite_freed_memory(0x5a) }
}
