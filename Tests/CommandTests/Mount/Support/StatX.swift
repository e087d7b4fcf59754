import Glibc

/// What statx(2) tells, where it is the same as what stat(2) does.
struct StatX {
  let stat: NodeStat

  init(_ path: String) throws {
    var bytes = [UInt8](repeating: 0, count: 256)
    // STATX_BASIC_STATS.
    try CallError.check(GNU.statx(GNU.here, path, GNU.noFollow, 0x7ff, &bytes))
    // struct statx of linux/stat.h.
    func number<Value: FixedWidthInteger>(_ offset: Int, _ type: Value.Type) -> Int {
      bytes.withUnsafeBytes { Int(truncatingIfNeeded: $0.loadUnaligned(fromByteOffset: offset, as: type)) }
    }
    func time(_ offset: Int) -> timespec {
      timespec(tv_sec: number(offset, Int64.self), tv_nsec: number(offset + 8, UInt32.self))
    }
    var result = Glibc.stat()
    result.st_nlink = .init(number(16, UInt32.self))
    result.st_uid = uid_t(number(20, UInt32.self))
    result.st_gid = gid_t(number(24, UInt32.self))
    result.st_mode = mode_t(number(28, UInt16.self))
    result.st_ino = .init(number(32, UInt64.self))
    result.st_size = number(40, UInt64.self)
    result.st_blocks = .init(number(48, UInt64.self))
    result.st_atim = time(64)
    result.st_ctim = time(96)
    result.st_mtim = time(112)
    result.st_dev = Self.makedev(UInt32(number(136, UInt32.self)), UInt32(number(140, UInt32.self)))
    stat = NodeStat(result)
  }

  /// gnu_dev_makedev(3), which is a macro here.
  private static func makedev(_ major: UInt32, _ minor: UInt32) -> dev_t {
    let high = dev_t(major & 0xfff) << 8 | dev_t(major & ~0xfff) << 32
    let low = dev_t(minor & 0xff) | dev_t(minor & ~0xff) << 12
    return high | low
  }
}
