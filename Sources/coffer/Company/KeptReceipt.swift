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
    guard let id = Container.statedID(at: path), let kept = try? all().first(where: { $0.vault == id.description })
    else {
      return
    }
    _ = try? Container.wipe(at: path, keyStore: FileKeyStore(path: kept.keyStore), everyCopy: true)
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
  /// store has none is a sign only where it is there itself, and the vault is gone: a folder can be taken away. Nor is it one where
  /// there is an anchor and no mark of a wipe: whoever has the vault open writes that anew.
  private func finishWiping() throws -> Bool {
    guard let bytes = [UInt8](hexadecimal: vault), let id = VaultID(bytes: bytes) else { return false }
    let keys = FileKeyStore(path: keyStore)
    // Another vault may be at that place by now.
    if Container.statedID(at: path) == id {
      let wiped = try? Container.wipe(at: path, keyStore: keys, everyCopy: true)
      if wiped == nil, isWiped != true { return false }
    } else {
      if isWiped != true, try FileSystem().status(of: keyStore) == nil { return false }
      if (try? Container.hasKeys(of: id, in: keys)) != false { try Container.destroyKeysLeft(of: id, in: keys) }
      if isWiped != true, try keys.keeps(.anchor, of: id), try !keys.keeps(.wiped, of: id) { return false }
    }
    return try !Container.hasKeys(of: id, in: keys)
  }
}
