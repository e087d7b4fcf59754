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
    // Nothing is to be shown of what has been moved out of this view.
    guard let told = movedFolders.withLock({ $0.removeValue(forKey: number) }),
      let place = present(number, told), let path = try? view.path(to: place.folder)
    else { return true }
    // It may have been moved once more since the kernel was told so of a name.
    session.tell(.expiry(place.name, in: kernelNumber(place.folder)))
    switch lookUp(number, at: path + [place.name]) {
    case .found: return true
    case .impossible:
      // Nobody has made sure of what it has by that name.
      session.tell(.name(place.name, in: kernelNumber(place.folder)))
      return true
    case .missing:
      movedFolders.withLock { if $0[number] == nil { $0[number] = place } }
      return false
    }
  }

  /// Where a folder lies now: those who move it may tell of that in another order.
  private func present(_ number: InodeNumber, _ told: FolderPlace) -> FolderPlace? {
    if (try? view.lookup(told.name, in: told.folder))?.number == number { return told }
    guard let folder = try? view.parent(of: number), let name = try? view.name(of: number, in: folder) else {
      return nil
    }
    return FolderPlace(name: name, folder: folder)
  }

  /// As long as the system takes it, in bytes (PATH_MAX of pathname(7)): nobody is told of a longer one either.
  private static let pathLimit = 4096

  private func lookUp(_ number: InodeNumber, at names: [[UInt8]]) -> FolderLookups.Outcome {
    let path = Array(names.joined(separator: [UInt8(ascii: "/")])) + [0]
    // One thread that has got stuck is enough.
    guard path.count <= Self.pathLimit, let device = deviceNumber, isInTree, !lookups.areUnderWay else {
      return .impossible
    }
    return BriefAnswer.within(ChangeQueue.briefTime) { [root = presentPlace, lookups] in
      lookups.run { tries in
        BriefAnswer.ofOwnMount { Self.lookUp(number, at: path, in: root, device, tries: tries) } ?? .impossible
      }
    } ?? .impossible
  }

  /// How long it waits between two tries, in microseconds.
  private static let pause: UInt32 = 2000

  /// - Parameter tries: how often it is tried while a program has locked a folder.
  private static func lookUp(
    _ number: InodeNumber, at path: [UInt8], in root: String, _ device: String, tries: Int
  ) -> FolderLookups.Outcome {
    let root = coffer_open_root(root)
    var found = (major: UInt32(0), minor: UInt32(0), number: UInt64(0))
    guard root >= 0, coffer_identify(root, &found.major, &found.minor, &found.number) == 0,
      "\(found.major):\(found.minor)" == device
    else { return .impossible }
    for count in 1...tries {
      let folder = path.withUnsafeBufferPointer { bytes in
        bytes.withMemoryRebound(to: CChar.self) { coffer_open_within(root, $0.baseAddress) }
      }
      if folder >= 0 {
        let isKnown = coffer_identify(folder, &found.major, &found.minor, &found.number) == 0
        return isKnown && found.number == number.value ? .found : .missing
      }
      // The kernel moves nothing while a program changes what is in the folder that it moves it from.
      guard errno == ESTALE, count < tries else { break }
      usleep(pause)
    }
    switch errno {
    case ENOENT, ENOTDIR, ELOOP, ESTALE: return .missing
    // Something is mounted on it.
    case EXDEV: return .found
    default: return .impossible
    }
  }
}
