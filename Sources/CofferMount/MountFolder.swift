internal import CofferSystem
internal import Foundation
internal import Glibc

/// An empty folder to mount on, held so that it is this one whatever its path leads to by then.
///
/// For a process that may mount by itself: somebody whose folder a part of the path is may exchange that at any moment, and have it lead to one of the
/// system's. For others a helper mounts (fusermount3), which asks whether the folder is theirs.
struct MountFolder {
  private let folder: OwnedDescriptor
  private let place: String

  /// Whether this process mounts by itself: it has CAP_SYS_ADMIN (capabilities(7)).
  static var isNeeded: Bool {
    let field = "CapEff:"
    guard let status = try? KernelFile.text(of: "/proc/self/status", limit: 1 << 20),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix(field) }),
      let capabilities = UInt64(line.dropFirst(field.count).trimmingCharacters(in: .whitespaces), radix: 16)
    else { return geteuid() == 0 }
    return capabilities >> 21 & 1 == 1
  }

  /// - Parameter place: a canonical path. Throws where a part of it is a link by now, or the folder is not empty.
  init(at place: String) throws(MountError) {
    self.place = place
    do {
      let files = FileSystem()
      var folder = try files.open("/", [.passage, .directory])
      for name in place.utf8.split(separator: UInt8(ascii: "/")) {
        folder = try files.open(Array(name), [.passage, .directory, .noFollow], in: folder)
      }
      self.folder = try files.open(".", [.readOnly, .directory], in: folder)
      guard try files.names(in: self.folder).isEmpty else { throw MountError.failed }
    } catch {
      throw .failed
    }
  }

  /// What leads to the folder, and to nothing else, as long as this is there. What is mounted on it lies above what this leads to.
  var path: String { "/proc/self/fd/\(folder.number)" }

  /// The folder's path now; nil where it has been removed.
  private var presentPlace: String? {
    guard let bytes = try? FileSystem().readLink(Array(path.utf8)) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  /// The system's number of what has just been mounted on it; nil where it has been moved, for so has the mount, and would be looked
  /// for in vain.
  var device: String? {
    guard presentPlace == place, let device = Mounts.device(at: place), presentPlace == place else { return nil }
    return device
  }
}
