#if os(Linux)
  internal import Glibc

  /// By how much this process's clocks are moved. Anyone may start a program in a time namespace of their own, in which
  /// the clock since the boot says what they like.
  enum TimeNamespace {
    /// What `/proc/self/ns/time` points to in the namespace that the system started in (`TIME_NS_INIT_INO`).
    static let first = "time:[4026531834]"

    /// Seconds and nanoseconds that `CLOCK_BOOTTIME` is ahead of the system's own; nil where that cannot be known.
    static let present: (seconds: Int64, nanoseconds: Int64)? = {
      let files = FileSystem()
      guard let process = try? files.open("/proc/self", .directory),
        let names = try? files.open("ns", .directory, in: process)
      else { return nil }
      func link(_ name: String) -> String? {
        (try? files.readLink(Array(name.utf8), in: names)).map { String(decoding: $0, as: UTF8.self) }
      }
      // A kernel that has no time namespaces has the others.
      guard let own = link("time") else { return link("pid") == nil ? nil : (0, 0) }
      let offsets = try? files.open("timens_offsets", .readOnly, in: process).contents(limit: 4096)
      return offset(
        own: own, children: link("time_for_children"), offsets: offsets.map { String(decoding: $0, as: UTF8.self) })
    }()

    /// - Parameters:
    ///   - own: what `ns/time` points to.
    ///   - children: what `ns/time_for_children` points to: `timens_offsets` speaks of that one.
    static func offset(
      own: String, children: String?, offsets: String?
    ) -> (seconds: Int64, nanoseconds: Int64)? {
      if own == first { return (0, 0) }
      guard own == children, let offsets else { return nil }
      for line in offsets.split(separator: "\n") {
        let parts = line.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count == 3, parts[0] == "boottime" || parts[0] == "7" else { continue }
        guard let seconds = Int64(parts[1]), let nanoseconds = Int64(parts[2]),
          (0..<1_000_000_000).contains(nanoseconds)
        else { return nil }
        return (seconds, nanoseconds)
      }
      return nil
    }
  }
#endif
