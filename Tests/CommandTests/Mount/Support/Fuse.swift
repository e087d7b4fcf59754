import Foundation
import Glibc

/// Whether this system can mount at all; the tests that need it say so.
enum Fuse {
  static let isThere = access("/dev/fuse", R_OK | W_OK) == 0

  /// Whether whoever makes a name space may mount in it.
  static let isThereInNameSpace: Bool = {
    let program = Process()
    program.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
    program.arguments = ["--user", "--map-root-user", "--mount", "test", "-w", "/dev/fuse"]
    guard (try? program.run()) != nil else { return false }
    program.waitUntilExit()
    return program.terminationStatus == 0
  }()
}
