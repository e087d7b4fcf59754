internal import CofferSystem
internal import Foundation
internal import Glibc

/// The programs that use a mount, as far as this process may look at them.
public struct MountUsers: Sendable, Equatable {
  private struct User: Equatable {
    let name: String
    let process: Int32
  }

  /// The process that asks to end a mount: it stands where its shell does, and will be gone.
  @TaskLocal public static var asker: Int32 = 0

  private var users: [User] = []
  /// There are more than are named.
  private var hasMore = false

  /// Programs that are named at most.
  private static let limit = 4

  /// Nobody.
  init() {}

  /// Programs whose working folder, root, program file or open files lie at or below `place`, a canonical path. What a program
  /// has only mapped is not seen.
  ///
  /// - Parameter server: the process that serves the mount.
  init(at place: String, servedBy server: Int32 = getpid()) {
    let below = Mounts.places(below: place)
    let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    for number in processes.compactMap({ Int32($0) }).sorted()
    where number != server && number != Self.asker && Self.uses(place, number, without: below) {
      guard users.count < Self.limit else {
        hasMore = true
        return
      }
      users.append(User(name: Self.name(of: number), process: number))
    }
  }

  public var isEmpty: Bool { users.isEmpty }

  /// Their process numbers.
  ///
  /// - Parameter naming: with their names, which may be those of files in the vault: for a person alone.
  public func text(naming: Bool) -> String {
    let texts = users.map { naming ? "\($0.name) \($0.process)" : "process \($0.process)" }
    return (texts + (hasMore ? ["…"] : [])).joined(separator: ", ")
  }

  /// - Parameter others: other mounts below, whose users are not this one's.
  private static func uses(_ place: String, _ process: Int32, without others: [String]) -> Bool {
    func lies(_ path: String, in folder: String) -> Bool {
      path.isSamePath(as: folder) || path.utf8.starts(with: (folder + "/").utf8)
    }
    let folder = "/proc/\(process)"
    let files = ((try? FileManager.default.contentsOfDirectory(atPath: folder + "/fd")) ?? []).map { "fd/" + $0 }
    return (["cwd", "root", "exe"] + files).contains { link in
      // Its text alone: to follow it would ask the mount.
      guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + link) else {
        return false
      }
      return lies(target, in: place) && !others.contains { lies(target, in: $0) }
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
    let text = (try? KernelFile.text(of: "/proc/\(process)/comm")) ?? "?"
    return String(text.unicodeScalars.filter { isHarmless($0) }.map(Character.init))
  }
}
