internal import CofferKeys
internal import CofferSystem

/// Destroys what every key of a vault hangs on: the device secret and the rotation in the key store, then the keybag.
/// Takes the same time at any size. Can be repeated after a crash.
struct KeyDestruction {
  let folder: VaultFolder
  let keyStore: any KeyStore
  let vault: VaultID

  func run() throws {
    // Whatever keeps one half must not keep the other: each alone opens nothing.
    let inKeyStore = Result { try keyStore.removeAll(of: vault) }
    let inFolder = Result { try destroyKeybag() }
    try inKeyStore.get()
    try inFolder.get()
  }

  private func destroyKeybag() throws {
    let files = folder.files
    try files.destroy(VaultFormat.keybag, in: folder.descriptor)
    // A change of the passcode that was cut may have left a keybag under its temporary name.
    for name in try files.names(in: folder.descriptor) where FileSystem.isUnfinishedReplacement(name) {
      try files.destroy(String(decoding: name, as: UTF8.self), in: folder.descriptor)
    }
    try folder.descriptor.sync()
  }
}
