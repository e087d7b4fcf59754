import Glibc

/// A lock of a range of bytes, by fcntl(2).
struct RangeLock: Hashable, CustomStringConvertible {
  /// Whose the lock is.
  enum Owner: Hashable {
    /// F_SETLK and F_GETLK.
    case process
    /// F_OFD_SETLK and F_OFD_GETLK: the opening of the file.
    case opening
  }

  var kind: CInt
  var start: Int
  /// To the end of the file, wherever that will be, where it is 0.
  var count: Int
  var process: pid_t = 0

  static func reading(_ start: Int = 0, _ count: Int = 0) -> RangeLock {
    RangeLock(kind: CInt(F_RDLCK), start: start, count: count)
  }

  static func writing(_ start: Int = 0, _ count: Int = 0) -> RangeLock {
    RangeLock(kind: CInt(F_WRLCK), start: start, count: count)
  }

  static func none(_ start: Int = 0, _ count: Int = 0) -> RangeLock {
    RangeLock(kind: CInt(F_UNLCK), start: start, count: count)
  }

  var description: String {
    "\(kind == CInt(F_RDLCK) ? "read" : kind == CInt(F_WRLCK) ? "write" : "no") lock \(start)+\(count) of \(process)"
  }

  fileprivate func call(_ command: CInt, _ file: CInt, whence: CInt = SEEK_SET) throws -> RangeLock {
    var lock = Glibc.flock()
    lock.l_type = Int16(kind)
    lock.l_whence = Int16(whence)
    lock.l_start = start
    lock.l_len = count
    lock.l_pid = process
    try CallError.check(fcntl(file, command, &lock))
    return RangeLock(kind: CInt(lock.l_type), start: lock.l_start, count: lock.l_len, process: lock.l_pid)
  }
}

extension Handle {
  /// Sets or gives up a lock without waiting.
  func set(_ lock: RangeLock, of owner: RangeLock.Owner = .process, whence: CInt = SEEK_SET) throws {
    _ = try lock.call(owner == .process ? F_SETLK : 37, number, whence: whence)
  }

  /// Waits for a lock.
  func wait(for lock: RangeLock, of owner: RangeLock.Owner = .process) throws {
    _ = try lock.call(owner == .process ? F_SETLKW : 38, number)
  }

  /// What is in the way of a lock; one of no kind where nothing is.
  func obstacle(to lock: RangeLock, of owner: RangeLock.Owner = .process) throws -> RangeLock {
    try lock.call(owner == .process ? F_GETLK : 36, number)
  }
}
