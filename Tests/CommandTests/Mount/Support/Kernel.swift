import Glibc

/// System calls on paths. Each throws a `CallError` where it fails; none follows a symbolic link that the last name is,
/// unless it says so.
enum Kernel {
  @discardableResult
  static func open(_ path: String, _ flags: CInt, mode: mode_t = 0o644) throws -> Handle {
    try Handle(path, flags, mode: mode)
  }

  // MARK: Names

  static func mkdir(_ path: String, mode: mode_t = 0o755) throws { try CallError.check(Glibc.mkdir(path, mode)) }

  static func rmdir(_ path: String) throws { try CallError.check(Glibc.rmdir(path)) }

  static func unlink(_ path: String) throws { try CallError.check(Glibc.unlink(path)) }

  static func rename(_ old: String, _ new: String, flags: CUnsignedInt = 0) throws {
    if flags == 0 {
      try CallError.check(Glibc.rename(old, new))
    } else {
      try CallError.check(GNU.rename(GNU.here, old, GNU.here, new, flags))
    }
  }

  static func link(_ old: String, _ new: String, following: Bool = false) throws {
    try CallError.check(linkat(GNU.here, old, GNU.here, new, following ? GNU.followLink : 0))
  }

  static func symlink(_ target: String, at path: String) throws { try CallError.check(Glibc.symlink(target, path)) }

  static func readLink(_ path: String, limit: Int = 8192) throws -> String {
    var buffer = [UInt8](repeating: 0, count: limit)
    let count = try buffer.withUnsafeMutableBytes {
      try CallError.check(readlink(path, $0.bindMemory(to: CChar.self).baseAddress!, $0.count))
    }
    return String(decoding: buffer[..<count], as: UTF8.self)
  }

  /// mknod(2).
  static func makeNode(_ path: String, _ kind: mode_t, mode: mode_t = 0o644, device: dev_t = 0) throws {
    try CallError.check(mknod(path, kind | mode, device))
  }

  /// A new file with this content.
  static func makeFile(_ path: String, _ content: [UInt8] = [], mode: mode_t = 0o644) throws {
    try Handle(path, O_WRONLY | O_CREAT | O_EXCL, mode: mode).writeAll(content)
  }

  static func makeFile(_ path: String, _ text: String) throws { try makeFile(path, Array(text.utf8)) }

  static func content(_ path: String) throws -> [UInt8] { try Handle(path, O_RDONLY).readAll() }

  static func text(_ path: String) throws -> String { String(decoding: try content(path), as: UTF8.self) }

  // MARK: Attributes

  static func stat(_ path: String, following: Bool = false) throws -> NodeStat {
    var result = Glibc.stat()
    try CallError.check(fstatat(GNU.here, path, &result, following ? 0 : GNU.noFollow))
    return NodeStat(result)
  }

  static func exists(_ path: String) throws -> Bool {
    do {
      _ = try stat(path)
      return true
    } catch let error as CallError where error.number == ENOENT {
      return false
    }
  }

  /// Follows links, as chmod(2) does.
  static func chmod(_ path: String, _ mode: mode_t) throws { try CallError.check(Glibc.chmod(path, mode)) }

  /// `-1` leaves user or group as it is.
  static func chown(_ path: String, user: Int = -1, group: Int = -1) throws {
    try CallError.check(lchown(path, uid_t(truncatingIfNeeded: user), gid_t(truncatingIfNeeded: group)))
  }

  static func setTimes(
    _ path: String, accessed: Moment = .asItIs, modified: Moment = .asItIs, following: Bool = false
  ) throws {
    let times = [accessed.time, modified.time]
    try CallError.check(utimensat(GNU.here, path, times, following ? 0 : GNU.noFollow))
  }

  /// utimensat(2) without times: both become the present.
  static func touch(_ path: String) throws { try CallError.check(utimensat(GNU.here, path, nil, GNU.noFollow)) }

  /// Follows links, as truncate(2) does.
  static func truncate(_ path: String, to count: Int) throws { try CallError.check(Glibc.truncate(path, count)) }

  static func access(_ path: String, _ mode: CInt) throws { try CallError.check(Glibc.access(path, mode)) }

  static func fileSystem(_ path: String) throws -> statvfs {
    var result = statvfs()
    try CallError.check(statvfs(path, &result))
    return result
  }

  // MARK: Extended attributes

  static func setAttribute(
    _ path: String, _ name: String, _ value: [UInt8], flags: CInt = 0, following: Bool = false
  ) throws {
    let call = following ? GNU.setFollowedAttribute : GNU.setAttribute
    try CallError.check(call(path, name, value, value.count, flags))
  }

  static func setAttribute(
    _ path: String, _ name: String, _ value: String, flags: CInt = 0, following: Bool = false
  ) throws {
    try setAttribute(path, name, Array(value.utf8), flags: flags, following: following)
  }

  static func attribute(_ path: String, _ name: String, following: Bool = false) throws -> [UInt8] {
    let call = following ? GNU.followedAttribute : GNU.attribute
    let count = try CallError.check(call(path, name, nil, 0))
    var value = [UInt8](repeating: 0, count: count)
    return Array(value[..<(try CallError.check(call(path, name, &value, count)))])
  }

  /// The names of all of a node's attributes in the user's name space, sorted.
  static func attributes(_ path: String, following: Bool = false) throws -> [String] {
    let call = following ? GNU.followedAttributes : GNU.attributes
    let count = try CallError.check(call(path, nil, 0))
    var names = [UInt8](repeating: 0, count: count)
    let filled = try CallError.check(call(path, &names, count))
    return names[..<filled].split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
      .filter { $0.hasPrefix("user.") }.sorted()
  }

  static func removeAttribute(_ path: String, _ name: String, following: Bool = false) throws {
    let call = following ? GNU.removeFollowedAttribute : GNU.removeAttribute
    try CallError.check(call(path, name))
  }
}
