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
  /// wherever it is seen; nil where no vault is seen.
  public static func device(at place: String) -> String? {
    entry(at: place).flatMap { $0.isVault ? $0.device : nil }
  }

  /// All that are mounted in this name space of mounts.
  public static var ofVaults: [(device: String, place: String)] {
    MountTable.present.entries.filter(\.isVault).map { ($0.device, $0.shownPlace) }
  }

  /// Why no vault's mount can be ended at a canonical path at which none is seen, or not the one that is meant.
  public static func absence(at place: String) -> MountError {
    entry(at: place).map { !$0.isVault } ?? false ? .foreign : .notMounted
  }

  /// Where a vault's mount is, by its device: also where it is bound to, or something hides it.
  static func places(of device: String) -> [String] {
    MountTable.present.entries.filter { $0.device == device && $0.isVault }.map(\.shownPlace)
  }

  /// The same, but for those that show a folder in it alone, or that something else hides.
  static func wholePlaces(of device: String) -> [String] {
    let table = MountTable.present
    return table.entries.filter { entry in
      entry.device == device && entry.isVault && entry.isWhole && table.seen(at: entry.place)?.device == device
    }.map(\.shownPlace)
  }

  /// Takes a vault's mount from a place until it is not seen there any more: it may be bound to itself.
  ///
  /// - Parameter device: of the mount. What else lies there stays.
  public static func unmountAll(of device: String, from place: String, isLazy: Bool) throws(MountError) {
    // Counted before, for the number may be another's afterwards.
    let count = MountTable.present.layers(of: device, at: Array(place.utf8)).count
    for _ in 0..<max(1, count) { try unmount(place, isLazy: isLazy, device: device) }
  }

  /// Lets the kernel read further ahead than it does by default, so that several threads open blocks; only root may.
  ///
  /// - Parameter device: of the mount at `place`.
  static func setReadAhead(at place: String, of device: String) {
    guard geteuid() == 0 else { return }
    // The kernel has one of its own from the answer to its hello, which may be on its way: it asks nothing before it has that.
    @Sendable func isThere() -> Bool {
      var found = statvfs()
      return statvfs(place, &found) == 0
    }
    guard BriefAnswer.within(2, { BriefAnswer.ofOwnMount(isThere) ?? isThere() }) == true else { return }
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

  /// The path of a file without links, `.` and `..`, which need not be UTF-8; nil where it cannot be reached.
  public static func canonicalPath(_ path: String) -> [UInt8]? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return Array(UnsafeRawBufferPointer(start: found, count: strlen(found)))
  }

  /// What is mounted at `place` and is seen there; nil where nothing is. A mount whose server is gone is listed as any other.
  private static func entry(at place: String) -> MountTable.Entry? { MountTable.present.seen(at: Array(place.utf8)) }

  /// Ends a mount of a vault, also one whose server is gone.
  ///
  /// - Parameters:
  ///   - isLazy: takes it out of the tree now, whoever uses it.
  ///   - device: of the mount that is to end: one that somebody else has made in its place stays.
  private static func unmount(_ place: String, isLazy: Bool, device: String) throws(MountError) {
    guard let present = entry(at: place) else { throw .notMounted }
    guard present.isVault else { throw .foreign }
    guard present.device == device else { throw .notMounted }
    if umount2(place, (isLazy ? CInt(MNT_DETACH) : 0) | CInt(UMOUNT_NOFOLLOW)) == 0 { return }
    if errno == EBUSY { throw busy(at: place) }
    // The kernel came upon it, and keeps it where this name space of mounts has it from one of another user's.
    if errno == EINVAL { throw entry(at: place)?.device == device ? .locked : .notMounted }
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
    if let user = entry.user, user != geteuid() { throw .notYours }
    throw isLazy ? .locked : busy(at: place)
  }

  private static func busy(at place: String) -> MountError {
    places(below: place).isEmpty ? .busy(MountUsers(at: place)) : .busyBelow
  }

  /// Where something is mounted below what is seen at a canonical path, and goes out of the tree with it.
  public static func places(below place: String) -> [String] {
    let table = MountTable.present
    let place = Array(place.utf8)
    guard let device = table.seen(at: place)?.device else { return [] }
    return table.below(table.layers(of: device, at: place)).map(\.shownPlace)
  }
}

extension String {
  /// Whether two paths are the same bytes: texts that Swift takes for equal may name different files.
  public func isSamePath(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
