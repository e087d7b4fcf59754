internal import CofferContainer
internal import CofferCrypto
internal import CofferSystem
internal import Foundation

/// Where a new recovery key goes: to a file, into the answer, or onto the terminal; once, and never again.
struct RecoveryKeyPaper {
  let key = RecoveryKey()
  private let file: String?
  /// The same, as this process comes to it.
  private let path: String?

  /// - Parameter file: a new file, written now, so that no vault is made whose key could not be kept.
  init(file: String?) throws {
    self.file = file
    let files = FileSystem()
    path = try file.map { try files.pathNamed($0) }
    guard let file, let path else { return }
    try Self.requirePlace(file)
    let descriptor = try files.open(path, [.writeOnly, .createNew], permissions: 0o600)
    do {
      try descriptor.writeAll(key.text)
      try descriptor.writeAll(Array("\n".utf8))
      try descriptor.sync()
    } catch {
      _ = try? files.unlink(path)
      throw error
    }
  }

  /// Throws where a key could not be written to this new file.
  static func requirePlace(_ file: String) throws {
    let files = FileSystem()
    guard try files.statusNamed(file) == nil else {
      throw Failure.cannotCreate("\(file): there is something at this place already; a recovery key replaces nothing")
    }
    let path = try files.pathNamed(file)
    guard let slash = path.lastIndex(of: "/") else { return }
    guard try files.status(of: path[...slash] + ".") != nil else {
      throw Failure.notFound("\(file): no such folder for the recovery key")
    }
  }

  /// Takes the file away: nothing was made that its key opens.
  func discard() { if let path { _ = try? FileSystem().unlink(path) } }

  /// Takes the file away where a change of the keys was refused, or never begun. Any other failure may come after the
  /// change: a key on paper that opens nothing does less harm than one that is lost.
  func discard(after error: any Error) {
    // A `Failure` is one of whoever was asked for a passcode.
    if error is Failure || (error as? ContainerError)?.category == .refused { discard() }
  }

  /// The text for an answer in JSON, unless it is in a file.
  var answer: String? {
    file == nil ? key.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } : nil
  }

  /// Shows the key, unless it is in a file.
  func show() throws {
    if let file { return Output.note("the recovery key is in \(file); keep it apart from this device") }
    Output.note(
      "this is the recovery key. It opens the vault without the passcode and without this device, and is never shown "
        + "again. Write it down, and keep it apart from both:")
    if try Terminal.show(key.text) { return }
    // No terminal: whoever ran this reads its messages.
    try Session.present.errors.writeAll(key.text)
    try Session.present.errors.writeAll(Array("\n".utf8))
  }
}

/// Where a recovery key, or the code of a clearing, comes from.
enum RecoveryKeyEntry {
  static func key(_ file: String?) throws -> RecoveryKey {
    if let file { return try RecoveryKey(text: TypedSecret.recoveryKey.existing(file)) }
    guard let text = try Session.present.readSecret(prompt: "Recovery key: ") else {
      throw Failure.usage(
        "there is no terminal to ask for the recovery key; give --recovery-key-file FILE (- is standard input)")
    }
    return try RecoveryKey(text: text)
  }

  static func code(_ file: String?) throws -> RecoveryKey {
    do {
      return try RecoveryKey(text: TypedSecret.clearingCode.existing(file))
    } catch let mistake as RecoveryKey.Mistake {
      throw Failure.usage(mistake.description.replacingOccurrences(of: "recovery key", with: "code"))
    }
  }
}

/// What a person must know before a company's key opens their vault.
enum EscrowNotice {
  static func show(_ key: HybridPublicKey) {
    Output.note(
      "whoever has the company's private key can from now on open this vault, and every copy of it, without you, your "
        + "passcode and this device. The key's fingerprint: \(fingerprint(key))")
  }

  /// What an unlock made of it, because the company's policy asks for it or does so no more.
  static func show(_ change: EscrowChange) {
    switch change {
    case .added(let key):
      Output.note(
        "the company's policy asks for it: whoever has its private key can from now on open this vault, and every copy of "
          + "it, without you, your passcode and this device, and clear your passcode. The key's fingerprint: "
          + fingerprint(key))
    case .removed:
      Output.note(
        "the company's policy asks for it no more: its key does not open this vault any more, only older copies")
    }
  }

  static let byPolicy = "the company's policy has its key open this vault, too"

  /// SHA-256 of the public key, in groups.
  static func fingerprint(_ key: HybridPublicKey) -> String {
    let digits = Array(key.fingerprint.hexadecimal)
    return stride(from: 0, to: digits.count, by: 8).map { String(digits[$0..<($0 + 8)]) }.joined(separator: " ")
  }
}
