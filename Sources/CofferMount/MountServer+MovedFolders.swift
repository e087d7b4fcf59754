internal import CFuse3
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Glibc
internal import Synchronization

/// Folders that a command or another mount has moved.
///
/// The kernel moves what it knows of a folder when it comes upon it by another name, with who stands in it and what is mounted below.
/// Nothing tells it of that but a lookup, and without one it takes the folder for removed when it is told to forget the old name:
/// whoever stands there would have no path (getcwd(2)). So the new name is looked up here, as any program would.
extension MountServer {
  /// What a folder is called, and where.
  struct FolderPlace: Hashable {
    let name: [UInt8]
    let folder: InodeNumber
  }

  func wasMoved(_ number: InodeNumber, _ name: [UInt8], to folder: InodeNumber) {
    if nodes.isKnown(number) { movedFolders.withLock { $0[number] = FolderPlace(name: name, folder: folder) } }
  }

  /// Has the kernel come upon a folder where it lies. `false` where it is to be tried once more, a while later. For a thread that
  /// answers nothing.
  func showPlace(of number: InodeNumber) -> Bool {
    guard let place = movedFolders.withLock({ $0[number] }) else { return true }
    // It may have been moved once more since the kernel was told so of its name.
    session.tell(.expiry(place.name, in: kernelNumber(place.folder)))
    // Nothing is to be shown of what lies outside of this view by now; and what has been moved on comes once more.
    let isShown =
      (try? view.path(to: place.folder)).map { lookUp(number, at: $0 + [place.name]) } ?? true
      || (try? view.lookup(place.name, in: place.folder))?.number != number
    if isShown { movedFolders.withLock { if $0[number] == place { $0[number] = nil } } }
    return isShown
  }

  /// As long as the system takes it, in bytes (PATH_MAX of pathname(7)): nobody is told of a longer one either.
  private static let pathLimit = 4096

  private func lookUp(_ number: InodeNumber, at names: [[UInt8]]) -> Bool {
    let path = Array(names.joined(separator: [UInt8(ascii: "/")])) + [0]
    guard path.count <= Self.pathLimit, let device = deviceNumber, isInTree else { return true }
    return BriefAnswer.ofOwnMount(within: ChangeQueue.briefTime) { [root = presentPlace] in
      Self.lookUp(number, at: path, in: root, device)
    } ?? true
  }

  /// How often it is tried while a program has locked a folder, and how long in between, in microseconds.
  private static let (lookupLimit, pause) = (50, UInt32(2000))

  /// Whether the folder has been found, or cannot be.
  private static func lookUp(_ number: InodeNumber, at path: [UInt8], in root: String, _ device: String) -> Bool {
    let root = coffer_open_root(root)
    var found = (major: UInt32(0), minor: UInt32(0), number: UInt64(0))
    guard root >= 0, coffer_identify(root, &found.major, &found.minor, &found.number) == 0,
      "\(found.major):\(found.minor)" == device
    else { return true }
    for _ in 0..<lookupLimit {
      let folder = path.withUnsafeBufferPointer { bytes in
        bytes.withMemoryRebound(to: CChar.self) { coffer_open_within(root, $0.baseAddress) }
      }
      if folder >= 0 {
        return coffer_identify(folder, &found.major, &found.minor, &found.number) == 0 && found.number == number.value
      }
      // The kernel moves nothing while a program changes what is in the folder that it moves it from.
      guard errno == ESTALE else { break }
      usleep(pause)
    }
    return ![ENOENT, ENOTDIR, ELOOP, ESTALE].contains(errno)
  }
}
