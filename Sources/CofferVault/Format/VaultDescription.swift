internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation

/// `coffer.json`: what anyone may know of a vault. The keybag's authentication codes cover its exact bytes.
struct VaultDescription {
  let id: VaultID
  /// The file's exact bytes.
  let bytes: [UInt8]

  private struct Wire: Codable {
    let format: String
    let version: Int
    let vaultID: String
  }

  init(id: VaultID) {
    self.id = id
    let text = """
      {
        "format": "coffer-vault",
        "version": \(VaultFormat.version),
        "vaultID": "\(id)"
      }

      """
    bytes = Array(text.utf8)
  }

  /// Parses the file. Throws `notAVault` or `newerFormat`.
  init(parsing bytes: [UInt8]) throws(VaultError) {
    guard let wire = try? JSONDecoder().decode(Wire.self, from: Data(bytes)), wire.format == "coffer-vault" else {
      throw .notAVault
    }
    guard wire.version <= VaultFormat.version else { throw .newerFormat(wire.version) }
    guard wire.version == VaultFormat.version, let raw = [UInt8](hexadecimal: wire.vaultID),
      let id = VaultID(bytes: raw)
    else { throw .notAVault }
    self.id = id
    self.bytes = bytes
  }
}
