import Glibc

/// What stat(2) tells.
struct NodeStat: Hashable, Sendable {
  var kind: mode_t
  /// The twelve bits.
  var permissions: mode_t
  var links: Int
  var user: uid_t
  var group: gid_t
  var size: Int
  /// Of 512 bytes each.
  var blocks: Int
  var number: UInt
  var device: UInt
  var accessed: Moment
  var modified: Moment
  var changed: Moment

  init(_ stat: stat) {
    kind = stat.st_mode & S_IFMT
    permissions = stat.st_mode & 0o7777
    links = Int(stat.st_nlink)
    user = stat.st_uid
    group = stat.st_gid
    size = Int(stat.st_size)
    blocks = Int(stat.st_blocks)
    number = UInt(stat.st_ino)
    device = UInt(stat.st_dev)
    accessed = Moment(stat.st_atim)
    modified = Moment(stat.st_mtim)
    changed = Moment(stat.st_ctim)
  }
}

/// A time as the file system has it.
struct Moment: Hashable, Comparable, Sendable, CustomStringConvertible {
  var seconds: Int
  var nanoseconds: Int

  init(_ seconds: Int, _ nanoseconds: Int) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  init(_ time: timespec) { self.init(time.tv_sec, time.tv_nsec) }

  var time: timespec { timespec(tv_sec: seconds, tv_nsec: nanoseconds) }

  /// UTIME_NOW and UTIME_OMIT of utimensat(2).
  static let now = Moment(0, 0x3fff_ffff)
  static let asItIs = Moment(0, 0x3fff_fffe)

  static func < (left: Moment, right: Moment) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  var description: String { "\(seconds).\(nanoseconds)" }

  /// Waits until a change that is made now is later than this, for a file system whose clock ticks slowly.
  func waitUntilPast() {
    var now = timespec()
    repeat { clock_gettime(CLOCK_REALTIME_COARSE, &now) } while Moment(now) <= self
  }
}
