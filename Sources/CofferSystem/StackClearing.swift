internal import CCoffer

/// Overwrites the next `byteCount` bytes of this thread's stack: what functions that have returned left there. At most 64 KiB, so
/// that every thread's stack has them.
public func overwriteStack(byteCount: Int) { coffer_zero_stack(max(0, min(byteCount, 64 << 10))) }
