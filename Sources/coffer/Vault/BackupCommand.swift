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

      The copy is encrypted as the vault is, and prints where it is. It opens with the passcode and the key store of
      this device: a backup of the key store, apart from it, belongs to it. An interrupted backup leaves nothing.

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

  func run() throws {
    // What cannot work is said before anyone is asked for a passcode.
    guard !destination.isEmpty else { throw Failure.usage("where to? The backup's folder has no name") }
    guard try !options.isInVault(destination) else {
      throw Failure.usage("a backup must be outside the vault's folder")
    }
    if let status = try FileSystem().statusNamed(destination), status.kind == .file {
      throw Failure.cannotCreate("\(destination): not a folder")
    }
    let path = destination.hasPrefix("/") ? destination : FileManager.default.currentDirectoryPath + "/" + destination
    let place = try FileSystem().pathNamed(destination)
    try options.withContainer { container in
      Interrupts.catchFromHere()
      let transfer = Transfer(total: try container.backupByteCount())
      defer { transfer.end() }
      try container.backup(to: place == destination ? path : place, control: transfer.control)
    }
    if options.json { try Output.json(["path": path]) } else { Output.name("", Array(path.utf8)) }
  }
}
