internal import CCoffer

/// What the system would give.
public enum FreeMemory {
  /// Whether so many bytes could be had at this moment, within the process's limits and the system's. Where the system promises more than
  /// it has, this says nothing of that.
  public static func isThere(byteCount: Int) -> Bool {
    guard let memory = coffer_map_memory(byteCount) else { return false }
    coffer_unmap_memory(memory, byteCount)
    return true
  }
}
