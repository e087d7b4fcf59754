internal import ArgumentParser
internal import CofferContainer
internal import CofferSystem
internal import Foundation

struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Copies the whole vault to a new or empty folder.",
    discussion: """
      Example:
        coffer backup /mnt/disk/Files.backup

      The copy is encrypted as the vault is, and its path is printed. The folder above it must be there. It opens with the
      passcode and the key store of this device: a backup of the key store, apart from it, belongs to it. An interrupted
      backup leaves nothing.

      To look into it, before anything in it is changed:
        coffer ls -R --vault /mnt/disk/Files.backup

      To put it back in the vault's place:
        mv ~/Files.coffer ~/Files.damaged
        cp -a /mnt/disk/Files.backup ~/Files.coffer
        coffer accept-restored --vault ~/Files.coffer

      Where the passcode was changed since the backup was made, no passcode opens it. Copy the vault's present
      keybag.json into it, or, in place of the last line, use the recovery key:
        coffer recover --accept-restored --vault ~/Files.coffer
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: ArgumentHelp("A new or empty folder.", valueName: "dest"), completion: .directory)
  var destination: String

  private struct Answer: Encodable {
    let path: String
    /// Of content that was copied, beside the index.
    let bytes: UInt64
  }

  func run() throws {
    // What cannot work is said before anyone is asked for a passcode.
    let files = FileSystem()
    guard !destination.isEmpty else { throw Failure.usage("where to? The backup's folder has no name") }
    guard try !options.isInVault(destination) else {
      throw Failure.usage("a backup must be outside the vault's folder")
    }
    let place = try files.pathNamed(destination)
    try requireOutsideMounts(place, files)
    try requireEmpty(place, files)
    let path = destination.hasPrefix("/") ? destination : FileManager.default.currentDirectoryPath + "/" + destination
    try options.withContainer { container in
      Interrupts.catchFromHere()
      let transfer = Transfer(total: try container.backupByteCount())
      defer { transfer.end() }
      try container.backup(to: place == destination ? path : place, control: transfer.control)
      transfer.end()
      // Before anything else may fail: the copy is there.
      try show(path, transfer.byteCount)
    }
  }

  private func show(_ path: String, _ byteCount: UInt64) throws {
    if options.json { return try Output.json(Answer(path: path, bytes: byteCount)) }
    Output.name("", Array(path.utf8))
  }

  /// Throws where the folder is in a mount of the vault. What the backup would store there waits for the backup to end: both would
  /// wait forever.
  private func requireOutsideMounts(_ path: String, _ files: FileSystem) throws {
    for mount in Session.present.mounts?.placesInTree ?? [] {
      guard let root = try files.status(of: mount + "/."), try FolderIdentity(root).sharesFileSystem(with: path)
      else { continue }
      throw Failure.usage("a backup must be outside the vault, and \(mount) shows what is in it; choose another folder")
    }
  }

  /// Throws where the folder is not empty, or could not be made in one that is there: a disk that is not mounted must not
  /// be taken for a folder that nobody has made yet.
  private func requireEmpty(_ path: String, _ files: FileSystem) throws {
    if let status = try files.status(of: path + "/.") ?? files.status(of: path) {
      guard status.kind == .directory else { throw Failure.cannotCreate("\(destination): not a folder") }
      let folder: OwnedDescriptor
      do {
        folder = try files.open(path, .directory)
      } catch {
        // The container says why.
        return
      }
      guard try files.names(in: folder).isEmpty else {
        throw Failure.cannotCreate(
          "\(destination): the folder is not empty; choose one that is empty or does not exist")
      }
      return
    }
    let names = path.split(separator: "/", omittingEmptySubsequences: true).dropLast()
    let parent = (path.hasPrefix("/") ? "/" : "") + names.joined(separator: "/")
    guard try files.status(of: (parent.isEmpty ? "." : parent) + "/.") != nil else {
      throw Failure.cannotCreate("\(parent): no such folder; is the disk mounted? If it is to be new: mkdir -p")
    }
  }
}
