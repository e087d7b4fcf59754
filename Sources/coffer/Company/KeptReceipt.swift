internal import CofferClient
internal import CofferContainer
internal import CofferKeys
internal import CofferSystem
internal import Foundation

/// The signed answer to an order to wipe, until the company has it. It lies outside of the vault and its key store, for it
/// must outlive them: made before they are destroyed, and sent when they are.
struct KeptReceipt: Codable {
  /// The vault's id.
  let vault: String
  /// Its folder, and that of its key store.
  let path: String
  let keyStore: String
  let server: String
  let pinnedCertificate: [UInt8]?
  let receipt: String
  /// The wipe has come back: what the receipt says is true.
  var isWiped: Bool?

  private static let limit = 1 << 20

  private static var folder: String {
    get throws { try Environment.folder("XDG_STATE_HOME", default: ".local/state") + "/coffer/receipts" }
  }

  /// Stores it durably.
  func keep() throws {
    let files = FileSystem()
    let path = try Self.folder
    try files.makeDirectories(path)
    let folder = try files.open(path, .directory)
    try files.replaceDurably(vault + ".json", in: folder, with: Array(try JSONEncoder().encode(self)))
  }

  /// Finishes the wipe of the vault at `path` where one was begun by order: whoever was killed in it had the order
  /// verified. So nobody opens what the company had destroyed, with or without its server.
  static func finishWipe(at path: String) {
    guard let id = Container.statedID(at: path), let kept = of(id) else { return }
    _ = try? kept.wipe(id, at: path)
  }

  /// The keys that a key store had for a vault were destroyed: what a receipt says of it is true from here on, where there is one.
  ///
  /// - Parameter keyStore: its path.
  static func noteWiped(_ vault: VaultID, in keyStore: String) throws {
    guard var kept = of(vault), kept.isWiped != true, isSame(kept.keyStore, keyStore) else { return }
    kept.isWiped = true
    try kept.keep()
  }

  /// Whether two paths lead to one key store, however they are written.
  private static func isSame(_ keyStore: String, _ other: String) -> Bool {
    if keyStore.utf8.elementsEqual(other.utf8) { return true }
    guard let found = try? FolderIdentity(at: keyStore) else { return false }
    return found == (try? FolderIdentity(at: other))
  }

  private static func of(_ vault: VaultID) -> KeptReceipt? {
    try? all().first { $0.vault == vault.description }
  }

  /// Hands in what is kept, of every vault but one that an agent holds. What cannot be handed in now stays, and is nobody's
  /// failure.
  ///
  /// - Returns: whether nothing stayed.
  @discardableResult
  static func deliverAll() async -> Bool {
    var isEmpty = true
    let held = Session.present.container?.id.description
    for receipt in (try? all()) ?? [] where receipt.vault != held {
      if await (try? receipt.deliver()) != true { isEmpty = false }
    }
    return isEmpty
  }

  private static func all() throws -> [KeptReceipt] {
    let files = FileSystem()
    let path = try folder
    guard try files.status(of: path) != nil else { return [] }
    let folder = try files.open(path, [.directory, .noFollow])
    return try files.names(in: folder).compactMap { name in
      guard name.count == 37, name.suffix(5).elementsEqual(".json".utf8), !name.contains(UInt8(ascii: "/")),
        let file = try? files.open(String(decoding: name, as: UTF8.self), [.readOnly, .noFollow], in: folder),
        let kept = try? JSONDecoder().decode(KeptReceipt.self, from: Data(file.contents(limit: limit))),
        name.dropLast(5).elementsEqual(kept.vault.utf8)
      else { return nil }
      return kept
    }
  }

  /// Makes sure of what the receipt says, hands it in, and forgets it.
  ///
  /// - Returns: whether the company has it.
  private func deliver() async throws -> Bool {
    guard try finishWiping() else { return false }
    try await PolicyClient(log: HeldLink.ring.log(label: "coffer.client"))
      .send(receipt: receipt, to: server, pinnedCertificate: pinnedCertificate)
    let files = FileSystem()
    let folder = try files.open(Self.folder, [.directory, .noFollow])
    try files.unlink(vault + ".json", in: folder)
    try folder.sync()
    return true
  }

  /// Destroys what a wipe that was cut has left; `false` or a failure where that is not done, or where nobody can say. That a key
  /// store has none is no sign: it can be taken away, as a folder can, and a disk be missing. A wipe that has come back is one, and
  /// the mark of one that has begun.
  private func finishWiping() throws -> Bool {
    guard let bytes = [UInt8](hexadecimal: vault), let id = VaultID(bytes: bytes) else { return false }
    var isWiped = isWiped == true
    // Another vault may be at that place by now.
    if Container.statedID(at: path) == id {
      do {
        let outcome = try wipe(id, at: path)
        // Whoever has it open has yet to end.
        if outcome.holder != nil { return false }
        if outcome.keys != .absent { isWiped = true }
      } catch let error as ContainerError where [.refused, .notFound].contains(error.category) {
        // It is not that vault any more, or a backup.
        try Container.requireUnused(at: path)
      }
    }
    // Keys without the mark of a wipe were made since, for a backup that somebody has recovered.
    if try Container.destroyKeysLeft(of: id, in: keys) {
      try? Self.noteWiped(id, in: keyStore)
      isWiped = true
    }
    return isWiped
  }

  private var keys: FileKeyStore { FileKeyStore(path: keyStore) }

  /// Destroys the vault; or, where that was done, what is left of it.
  private func wipe(_ id: VaultID, at path: String) throws -> WipeOutcome {
    if isWiped == true { return try Container.removeRemains(at: path, keyStore: keys, expecting: id) }
    return try Container.wipe(at: path, keyStore: keys, everyCopy: true, expecting: id) {
      try? Self.noteWiped(id, in: keyStore)
    }
  }
}
