import CofferKeys

@testable import CofferVault

/// Everything that is stored of a vault, each with a row in the tamper matrix.
enum StoredPart: Hashable, CaseIterable {
  case record(RecordKind)
  case salt
  case description
  case keybag
  case object
  /// `index.sqlite` as a file, whatever its rows.
  case indexFile
  case item(KeyStoreItem)

  static var allCases: [StoredPart] {
    RecordKind.allCases.map { .record($0) } + [.salt, .description, .keybag, .object, .indexFile]
      + KeyStoreItem.allCases.map { .item($0) }
  }

  var name: String {
    switch self {
    case .record(let kind): Self.name(kind)
    case .salt: "salt"
    case .description: "`coffer.json`"
    case .keybag: "`keybag.json`"
    case .object: "object"
    case .indexFile: "`index.sqlite`"
    case .item(let item): "key store: \(item.rawValue)"
    }
  }

  private static func name(_ kind: RecordKind) -> String {
    switch kind {
    case .entry: "entry"
    case .inode: "inode"
    case .map: "map page"
    case .setting: "setting"
    case .pending: "removal mark"
    case .deposit: "deposit mark"
    case .bucket: "bucket page"
    case .root: "root"
    case .attribute: "attribute"
    case .mapDirectory: "map directory"
    }
  }
}

/// What somebody does to a stored part.
enum Attack: String, CaseIterable {
  case flip, zero, truncate, extend, swap, duplicate, delete, replay, foreign, launder
}
