internal import CofferSystem

/// Folders of the system that a vault does not take in: its own, which changes with every byte that is stored; that of the
/// keys that open it, which would be locked in with what they open; and those where it is mounted, which have no end.
struct OwnFolders {
  private let vault: FolderIdentity
  private let keyStore: FolderIdentity?
  /// The file systems of the mounts.
  private let mounts: Set<UInt64>

  init(_ options: GlobalOptions) throws {
    let session = Session.present
    vault = try session.held?.identity ?? FolderIdentity(at: options.vaultPath)
    keyStore = session.held == nil ? try? FolderIdentity(at: options.keyStorePath) : session.held?.keyStore
    mounts = Set((session.mounts?.placesInTree ?? []).compactMap { try? FolderIdentity(at: $0).device })
  }

  /// Throws where what a person named is one of the first two, or in it.
  func requireOutside(_ source: String) throws {
    let path = try FileSystem().pathNamed(source)
    if try vault.holds(path) {
      throw Failure.usage("\(source): this is the vault's own folder, or in it, and cannot be stored in the vault")
    }
    if try keyStore?.holds(path) == true {
      throw Failure.usage("\(source): this is the key store, or in it: stored in the vault, it could open nothing")
    }
  }

  /// Why a folder below another one is passed over; nil where it is not.
  func reason(toPassOver folder: FileStatus, in parent: FileStatus) -> String? {
    if FolderIdentity(folder) == vault { return "it is the vault itself" }
    if FolderIdentity(folder) == keyStore { return "it is the key store" }
    return isMounted(folder) && !isMounted(parent) ? "the vault is mounted there" : nil
  }

  /// Whether a folder is one of the vault's, seen in a mount: the system then numbers it as the vault does.
  func isMounted(_ folder: FileStatus) -> Bool { mounts.contains(folder.device) }
}
