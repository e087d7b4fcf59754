internal import CFuse3
internal import CofferSystem
internal import Foundation
internal import Glibc

/// What is mounted on this system, as far as it concerns vaults.
public enum Mounts {
  /// Whether a vault is mounted at a canonical path; `false` also where another file system is.
  public static func isVault(at place: String) -> Bool { device(at: place) != nil }

  /// Names and process numbers of some programs that use files in the mount at a canonical path, as far as this process may look at
  /// them.
  ///
  /// - Parameter server: the process that serves the mount.
  public static func users(at place: String, servedBy server: Int32) -> MountUsers {
    MountUsers(at: place, servedBy: server)
  }

  /// The device that the system has made for the vault's mount at a canonical path, which no other has as long as that is there,
  /// wherever it is seen; nil where no vault is mounted last.
  public static func device(at place: String) -> String? {
    entry(at: place).flatMap { $0.isVault ? $0.device : nil }
  }

  /// Whether something that is no vault is mounted at a canonical path.
  public static func isForeign(at place: String) -> Bool { entry(at: place).map { !$0.isVault } ?? false }

  /// Where a vault's mount is seen, by its device: also where it is bound to.
  static func places(of device: String) -> [String] {
    entries().filter { $0.device == device && $0.isVault }.map(\.shownPlace)
  }

  /// The same, but for those that show a folder in it alone, or that something else hides.
  static func wholePlaces(of device: String) -> [String] {
    let entries = entries()
    return entries.filter { entry in
      entry.device == device && entry.isVault && entry.isWhole && stack(at: entry.place, entries).last?.device == device
    }.map(\.shownPlace)
  }

  /// Takes a vault's mount from a place until it is not seen there any more: it may be bound to itself.
  ///
  /// - Parameter device: of the mount. What else lies there stays.
  public static func unmountAll(of device: String, from place: String, isLazy: Bool) throws(MountError) {
    // Counted before, for the number may be another's afterwards.
    for _ in 0..<max(1, layers(of: device, at: place)) { try unmount(place, isLazy: isLazy, device: device) }
  }

  private static func layers(of device: String, at place: String) -> Int {
    stack(at: Array(place.utf8), entries()).reversed().prefix { $0.device == device }.count
  }

  /// Lets the kernel read further ahead than it does by default, so that several threads open blocks; only root may.
  ///
  /// - Parameter device: of the mount at `place`.
  static func setReadAhead(at place: String, of device: String) {
    // The kernel has one of its own from the answer to its hello, which may be on its way: it asks nothing before it has that.
    var found = statvfs()
    guard geteuid() == 0, statvfs(place, &found) == 0 else { return }
    try? "1024".write(toFile: "/sys/class/bdi/\(device)/read_ahead_kb", atomically: false, encoding: .utf8)
  }

  /// Whether the server of a mount at a canonical path is gone: nothing there can be looked at.
  public static func isDead(at place: String) -> Bool { server(at: place) == .gone }

  public enum Server: Sendable {
    case answers, gone
    /// Not within two seconds: it may have been stopped. Until it does, this process uses the mount.
    case silent
  }

  /// How the server of a vault's mount at a canonical path does; nil where none is mounted there.
  public static func server(at place: String) -> Server? {
    guard isVault(at: place) else { return nil }
    guard let isGone = BriefAnswer.within(2, { isUnconnected(place) }) else { return .silent }
    return isGone ? .gone : .answers
  }

  private static func isUnconnected(_ place: String) -> Bool {
    // Not what the kernel may remember, such as the folder's attributes.
    var found = statvfs()
    return statvfs(place, &found) != 0 && errno == ENOTCONN
  }

  /// Whether the system says within two seconds what a path leads to, if anything: not where that is a mount, or in one, whose server
  /// answers nobody.
  public static func isTold(_ path: String) -> Bool {
    BriefAnswer.within(2) { canonicalPath(path) != nil } != nil
  }

  /// The path of a file without links, `.` and `..`, which need not be UTF-8; nil where it cannot be reached.
  public static func canonicalPath(_ path: String) -> [UInt8]? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return Array(UnsafeRawBufferPointer(start: found, count: strlen(found)))
  }

  /// What is mounted at `place` last; nil where nothing is. A mount whose server is gone is listed as any other.
  private static func entry(at place: String) -> Entry? { stack(at: Array(place.utf8), entries()).last }

  /// What is mounted at a canonical path, from the lowest to what is seen there. The system lists them in the order in which they were
  /// made, and one that was moved there lies on those that were made later: each one's parent is what it lies on.
  private static func stack(at place: [UInt8], _ entries: [Entry]) -> [Entry] {
    var rest = entries.filter { $0.place == place }
    var stack: [Entry] = []
    while let lowest = rest.firstIndex(where: { each in !rest.contains { $0.id == each.parent && $0.id != each.id } }) {
      stack.append(rest.remove(at: lowest))
    }
    return stack + rest
  }

  /// A line of proc_pid_mountinfo(5).
  private struct Entry {
    /// Of the mount, and of the one that it lies on, in this name space.
    let id: String
    let parent: String
    /// A name need not be UTF-8, and two that Swift takes for equal texts may be different.
    let place: [UInt8]
    let kind: String
    let device: String
    /// Not only a folder in it.
    let isWhole: Bool
    /// The user who made it, as FUSE has it.
    let user: uid_t?

    var isVault: Bool { kind == "fuse.coffer" }
    var shownPlace: String { String(decoding: place, as: UTF8.self) }
  }

  private static func entries() -> [Entry] {
    let bytes = (try? Data(contentsOf: URL(fileURLWithPath: "/proc/self/mountinfo"))) ?? Data()
    return bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      // The first two fields are numbers of the mount and of its parent, the third is the device, the fourth what is shown of it, the
      // fifth the mount point; behind a dash are the type, the source, and the file system's own options.
      let fields = line.split(separator: UInt8(ascii: " "))
      func text(_ index: Int) -> String { String(decoding: fields[index], as: UTF8.self) }
      guard fields.count > 6, let dash = fields.firstIndex(of: Data("-".utf8)), dash + 3 < fields.count else {
        return nil
      }
      let user = text(dash + 3).split(separator: ",").first { $0.hasPrefix("user_id=") }
      return Entry(
        id: text(0), parent: text(1), place: unescaped(fields[4]), kind: text(dash + 1), device: text(2),
        isWhole: fields[3] == Data("/".utf8),
        user: user.flatMap { uid_t($0.dropFirst("user_id=".count)) })
    }
  }

  /// Ends a mount of a vault, also one whose server is gone.
  ///
  /// - Parameters:
  ///   - isLazy: takes it out of the tree now, whoever uses it.
  ///   - device: of the mount that is to end: one that somebody else has made in its place stays.
  private static func unmount(_ place: String, isLazy: Bool, device: String) throws(MountError) {
    guard let present = entry(at: place), present.device == device else { throw .notMounted }
    guard present.isVault else { throw .foreign }
    if umount2(place, (isLazy ? CInt(MNT_DETACH) : 0) | CInt(UMOUNT_NOFOLLOW)) == 0 { return }
    if errno == EBUSY { throw busy(at: place) }
    // An ordinary user ends mounts through the helper.
    do {
      var helper = try Subprocess(
        "/usr/bin/fusermount3", arguments: ["-u", "-q"] + (isLazy ? ["-z"] : []) + ["--", place])
      let answer = try helper.converse(sending: [], receivingAtMost: 64 << 10, within: .seconds(30))
      if answer.end == .exited(0) { return }
    } catch {
      throw error.isAbsent ? .noHelper : .failed
    }
    guard let entry = entry(at: place) else { throw .notMounted }
    throw entry.user.map { $0 != geteuid() } ?? false ? .notYours : busy(at: place)
  }

  private static func busy(at place: String) -> MountError {
    places(below: place).isEmpty ? .busy(MountUsers(at: place)) : .busyBelow
  }

  /// Where something is mounted below a mount at a canonical path.
  public static func places(below place: String) -> [String] {
    entries().filter { $0.place.starts(with: (place + "/").utf8) }.map(\.shownPlace)
  }

  /// Spaces, tabs, line breaks and backslashes stand as three octal digits.
  private static func unescaped(_ text: Data) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = Array(text)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\\"), rest.count >= 3,
        let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
      {
        bytes.append(code)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }
}

extension String {
  /// Whether two paths are the same bytes: texts that Swift takes for equal may name different files.
  public func isSamePath(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
