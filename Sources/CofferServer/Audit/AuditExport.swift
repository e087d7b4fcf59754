internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import Hummingbird

/// The file that an audit is exported to, as JSON Lines:
///
/// ```
/// {"format":"coffer-audit","keyset":"…","rootKey":"…","tenant":"…","version":1}
/// {"entry":{…},"hash":"…"}          one for each entry, the entry's exact bytes between the fixed parts
/// {"checkpoint":"…"}                a compact JWS by a key of the keyset
/// ```
enum AuditExport {
  struct Header: Codable {
    let format: String
    let version: Int
    let tenant: String
    let rootKey: String
    let keyset: String
  }

  struct Footer: Codable {
    let checkpoint: String
  }

  static let format = "coffer-audit"
  static let entryStart = Array(#"{"entry":"#.utf8)
  static let hashStart = Array(#","hash":""#.utf8)
  static let lineEnd = Array(#""}"#.utf8)

  static func header(_ tenant: Tenant) -> [UInt8] {
    Response.encoded(
      Header(
        format: format, version: 1, tenant: tenant.id, rootKey: tenant.keys.root.text, keyset: tenant.keys.keyset))
      + [10]
  }

  static func line(_ record: AuditRecord) -> [UInt8] {
    entryStart + record.entry + hashStart + Array(record.hash.hexadecimal.utf8) + lineEnd + [10]
  }

  static func footer(_ checkpoint: SignedCheckpoint) -> [UInt8] {
    Response.encoded(Footer(checkpoint: checkpoint.document.text)) + [10]
  }
}
