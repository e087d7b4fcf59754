internal import Foundation
internal import Glibc

/// The programs that keep a mount from being ended, as far as this process may look at them.
enum MountUsers {
  /// Programs that are named at most.
  private static let limit = 4

  /// Programs whose working folder, root, program file or open files lie at or below `place`, a canonical path: their names
  /// and process numbers. What a program has only mapped is not seen.
  ///
  /// - Parameter server: the process that serves the mount.
  static func names(at place: String, servedBy server: Int32 = getpid()) -> [String] {
    let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    var found: [String] = []
    for number in processes.compactMap({ Int32($0) }).sorted() where number != server && uses(place, number) {
      guard found.count < limit else { return found + ["…"] }
      found.append("\(name(of: number)) \(number)")
    }
    return found
  }

  private static func uses(_ place: String, _ process: Int32) -> Bool {
    let folder = "/proc/\(process)"
    let files = ((try? FileManager.default.contentsOfDirectory(atPath: folder + "/fd")) ?? []).map { "fd/" + $0 }
    return (["cwd", "root", "exe"] + files).contains { link in
      // Its text alone: to follow it would ask the mount.
      guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + link) else {
        return false
      }
      return target == place || target.hasPrefix(place + "/")
    }
  }

  /// It neither ends a line nor changes in which order others are shown.
  private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
    default: true
    }
  }

  /// As the kernel has it, up to 15 bytes, which any program can choose.
  private static func name(of process: Int32) -> String {
    let text = (try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)) ?? "?"
    return String(text.unicodeScalars.filter { isHarmless($0) }.map(Character.init))
  }
}
