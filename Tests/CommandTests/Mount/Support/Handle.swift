import Glibc

/// An open file or folder, closed with its last reference.
final class Handle: Sendable {
  let number: CInt

  init(_ path: String, _ flags: CInt, mode: mode_t = 0o644) throws {
    number = try CallError.check(Glibc.open(path, flags | O_CLOEXEC, mode))
  }

  init(taking number: CInt) { self.number = number }

  deinit { close(number) }

  func stat() throws -> NodeStat {
    var result = Glibc.stat()
    try CallError.check(fstat(number, &result))
    return NodeStat(result)
  }

  // MARK: Content

  /// At the handle's own position unless one is given.
  @discardableResult
  func write(_ bytes: [UInt8], at offset: Int? = nil) throws -> Int {
    if let offset { return try CallError.check(pwrite(number, bytes, bytes.count, offset)) }
    return try CallError.check(Glibc.write(number, bytes, bytes.count))
  }

  @discardableResult
  func write(_ text: String, at offset: Int? = nil) throws -> Int { try write(Array(text.utf8), at: offset) }

  func writeAll(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty { rest = rest.dropFirst(try write(Array(rest))) }
  }

  /// What one call gives: fewer bytes than asked for only at the end.
  func read(_ count: Int, at offset: Int? = nil) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let result =
      if let offset { pread(number, &bytes, count, offset) } else { Glibc.read(number, &bytes, count) }
    return Array(bytes[..<(try CallError.check(result))])
  }

  /// Everything from the beginning, wherever the position is; no more than a test has any use for.
  func readAll() throws -> [UInt8] {
    var result: [UInt8] = []
    while true {
      guard result.count <= 256 << 20 else { throw CallError(EFBIG) }
      let bytes = try read(256 << 10, at: result.count)
      if bytes.isEmpty { return result }
      result += bytes
    }
  }

  var text: String { get throws { String(decoding: try readAll(), as: UTF8.self) } }

  @discardableResult
  func seek(_ offset: Int, _ whence: CInt = SEEK_SET) throws -> Int {
    try CallError.check(lseek(number, offset, whence))
  }

  func truncate(to count: Int) throws { try CallError.check(ftruncate(number, count)) }

  /// fallocate(2).
  func change(_ change: CInt, _ offset: Int, _ count: Int) throws {
    try CallError.check(GNU.allocate(number, change, offset, count))
  }

  /// One copy_file_range(2), at given offsets.
  @discardableResult
  func copy(_ count: Int, from source: Handle, at sourceOffset: Int, to offset: Int, flags: CUnsignedInt = 0) throws
    -> Int
  {
    var (from, to) = (sourceOffset, offset)
    return try CallError.check(GNU.copyRange(source.number, &from, number, &to, count, flags))
  }

  func sync() throws { try CallError.check(fsync(number)) }

  func syncData() throws { try CallError.check(fdatasync(number)) }

  // MARK: Attributes

  func chmod(_ mode: mode_t) throws { try CallError.check(fchmod(number, mode)) }

  func chown(user: Int = -1, group: Int = -1) throws {
    try CallError.check(fchown(number, uid_t(truncatingIfNeeded: user), gid_t(truncatingIfNeeded: group)))
  }

  func setTimes(accessed: Moment = .asItIs, modified: Moment = .asItIs) throws {
    try CallError.check(futimens(number, [accessed.time, modified.time]))
  }

  func setAttribute(_ name: String, _ value: [UInt8], flags: CInt = 0) throws {
    try CallError.check(GNU.setOpenAttribute(number, name, value, value.count, flags))
  }

  func attribute(_ name: String) throws -> [UInt8] {
    var value = [UInt8](repeating: 0, count: 64 << 10)
    return Array(value[..<(try CallError.check(GNU.openAttribute(number, name, &value, value.count)))])
  }
}
