internal import CofferSystem

/// The process's own peak of resident memory, from Linux's counters (proc(5)); nothing elsewhere.
enum ResidentMemory {
  /// Starts counting the peak anew; returns what is resident now, in bytes.
  static func reset() -> Int? {
    guard let switchFile = try? FileSystem().open("/proc/self/clear_refs", .writeOnly),
      (try? switchFile.writeAll(Array("5".utf8))) != nil
    else { return nil }
    return field("VmRSS:")
  }

  static func peak(above baseline: Int?) -> Int? {
    guard let baseline, let peak = field("VmHWM:") else { return nil }
    return max(0, peak - baseline)
  }

  private static func field(_ name: String) -> Int? {
    guard let status = try? KernelFile.text(of: "/proc/self/status") else { return nil }
    for line in status.split(separator: "\n") where line.hasPrefix(name) {
      return line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Int($0) }
        .map { $0 << 10 }
    }
    return nil
  }
}
