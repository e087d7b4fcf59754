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
    guard let id = Container.statedID(at: path), let kept = of(id), (try? kept.wasRecovered(id)) == false else {
      return
    }
    _ = try? kept.wipe(id, at: path)
  }

  /// The keys of a vault were destroyed: what its receipt says is true from here on, where there is one.
  static func noteWiped(_ vault: VaultID) {
    guard var kept = of(vault), kept.isWiped != true else { return }
    kept.isWiped = true
    try? kept.keep()
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

  /// Destroys what a wipe that was cut has left; `false` where there still are keys, or where nobody can say. That a key
  /// store has none is no sign: it can be taken away, as a folder can, and a disk be missing. A wipe that has come back is one, and
  /// the mark of one that has begun.
  private func finishWiping() throws -> Bool {
    guard let bytes = [UInt8](hexadecimal: vault), let id = VaultID(bytes: bytes) else { return false }
    if try wasRecovered(id) { return true }
    var isWiped = isWiped == true
    // Another vault may be at that place by now.
    if Container.statedID(at: path) == id {
      let outcome = try? wipe(id, at: path)
      // Whoever has it open has yet to end.
      if outcome?.holder != nil { return false }
      if let outcome, outcome.keys != .absent { isWiped = true }
    } else if try Container.destroyKeysLeft(of: id, in: keys) {
      Self.noteWiped(id)
      isWiped = true
    }
    return try isWiped && !Container.hasKeys(of: id, in: keys)
  }

  private var keys: FileKeyStore { FileKeyStore(path: keyStore) }

  private func wipe(_ id: VaultID, at path: String) throws -> WipeOutcome {
    try Container.wipe(at: path, keyStore: keys, everyCopy: true, expecting: id) { Self.noteWiped(id) }
  }

  /// The vault was wiped, and keys were made for it since that no wipe has begun to destroy: somebody has recovered a backup. The order
  /// was carried out, and is none for that.
  private func wasRecovered(_ id: VaultID) throws -> Bool {
    guard isWiped == true else { return false }
    return try Container.hasKeys(of: id, in: keys) && !Container.isWiped(id, in: keys)
  }
}
