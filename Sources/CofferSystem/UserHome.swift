#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The home folder of the user whom this process runs for.
public enum UserHome {
  /// As the system's list of users has it, by number: a name in the environment may be another user's. Nil where it has none.
  public static var path: String? {
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    var room = [CChar](repeating: 0, count: 1 << 10)
    while true {
      let code = getpwuid_r(geteuid(), &entry, &room, room.count, &found)
      guard code == ERANGE, room.count < 1 << 20 else { break }
      room = [CChar](repeating: 0, count: 2 * room.count)
    }
    guard found != nil, let home = entry.pw_dir else { return nil }
    return withExtendedLifetime(room) { String(validatingCString: home) }
  }
}
