import CofferFiles
import CofferKeys
import CofferSystem
import CofferVaultTestSupport
import Foundation
import GRDB

@testable import CofferVault

extension TamperMatrix {
  /// The salt that the newest rows were sealed with, and another.
  func salts() throws -> [TamperedVault.RowReference] {
    let index = try RawIndex(disk + "/vault")
    defer { try? index.close() }
    return try index.rows(.salt).reversed().compactMap { Int64.fromDatabaseValue($0.key) }
      .map { TamperedVault.RowReference(.salt, id: $0) }
  }

  func attackRow(
    _ part: StoredPart, _ rows: [TamperedVault.RowReference], _ attack: Attack
  ) throws -> Damage? {
    let target = rows[0]
    let index = try RawIndex(disk + "/vault")
    defer { try? index.close() }
    guard let value = try index.value(target.table, target.key) else { throw Failure(description: "no such row") }
    var damage = Damage.rows([target])
    switch attack {
    case .flip: try index.update(target.table, target.key, to: value.flipped)
    case .zero: try index.update(target.table, target.key, to: Data(count: value.count))
    case .truncate: try index.update(target.table, target.key, to: value.prefix(value.count - 3))
    case .extend: try index.update(target.table, target.key, to: value + Data(count: 3))
    case .swap:
      guard rows.count > 1, let partner = try index.value(rows[1].table, rows[1].key) else {
        throw Failure(description: "no partner")
      }
      try index.update(target.table, target.key, to: partner)
      try index.update(rows[1].table, rows[1].key, to: value)
      damage = .rows([target, rows[1]])
    case .duplicate:
      switch target.table {
      case .bucket:
        try index.update(.bucket, rows[1].key, to: value)
        damage = .rows([rows[1]])
      case .salt: try index.put(.salt, Int64(1000).databaseValue, value)
      default:
        // Beside the row, in its bucket.
        guard var key = Data.fromDatabaseValue(target.key) else { throw Failure(description: "no key") }
        key[15] ^= 0x80
        try index.put(target.table, key.databaseValue, value)
      }
    case .delete: try index.delete(target.table, target.key)
    case .replay:
      let before = try RawIndex(vault.folder("old/vault"))
      defer { try? before.close() }
      guard let old = try before.value(target.table, target.key), old != value else { return nil }
      try index.update(target.table, target.key, to: old)
    case .foreign:
      let foreign = try RawIndex(other.folder("now/vault"))
      defer { try? foreign.close() }
      guard let row = try foreignRow(target, foreign) else { throw Failure(description: "no foreign row") }
      try index.update(target.table, target.key, to: row)
    case .launder:
      try index.delete(target.table, target.key)
      try index.close()
      let refusal = use(part)
      let again = try RawIndex(disk + "/vault")
      defer { try? again.close() }
      try again.put(target.table, target.key, value)
      damage = .laundered(refusal: refusal, damage)
    }
    return target.table == .root || target.table == .salt ? damage.widened : damage
  }

  /// The value of the row that the other vault has in the same role.
  private func foreignRow(_ target: TamperedVault.RowReference, _ index: RawIndex) throws -> Data? {
    if target.table == .salt { return try index.rows(.salt).last?.value }
    let kind = vault.targets.first { $0.value.first == target }?.key
    if let kind, let row = other.targets[kind]?.first, let value = try index.value(row.table, row.key) { return value }
    return try index.rows(target.table).first?.value
  }

  func attackFile(_ part: StoredPart, _ attack: Attack) throws -> Damage? {
    guard let name = vault.file(part), case let path = disk + "/" + name else { return nil }
    let whole = try Data(contentsOf: URL(filePath: path))
    var damage = Damage.everything
    if part == .object { damage = .files(["docs/target"]) }
    if part == .item(.anchor) { damage = .nothing }
    func store(_ bytes: Data, at path: String) throws {
      let file = try FileSystem().open(path, [.writeOnly, .create, .truncate])
      try file.writeAll(Array(bytes))
    }
    switch attack {
    case .flip:
      // Of the index the header: what lies elsewhere in the file is the rows' matter.
      try store(part == .indexFile ? whole.prefix(16).flipped + whole.dropFirst(16) : whole.flipped, at: path)
    case .zero:
      let range = part == .indexFile ? 0..<8192 : (whole.count / 4)..<(whole.count * 3 / 4)
      var bytes = whole
      bytes.resetBytes(in: range)
      // Zeros where there are zeros change nothing.
      if bytes == whole { bytes.resetBytes(in: 0..<whole.count) }
      try store(bytes, at: path)
    case .truncate: try store(whole.prefix(whole.count / 2), at: path)
    case .extend: try store(whole + Data(repeating: 0x20, count: 100), at: path)
    case .swap:
      guard let partner = vault.partner(part), case let second = disk + "/" + partner else {
        throw Failure(description: "no partner")
      }
      let bytes = try Data(contentsOf: URL(filePath: second))
      try store(bytes, at: path)
      try store(whole, at: second)
      if part == .object { damage = .files(["docs/target", "docs/partner"]) } else { damage = .everything }
    case .duplicate: try store(whole, at: path + "0")
    case .delete: try FileManager.default.removeItem(atPath: path)
    case .replay:
      let old = try Data(contentsOf: URL(filePath: vault.folder("old/" + name)))
      guard old != whole else { return nil }
      try store(old, at: path)
    case .foreign:
      guard let name = other.file(part) else { return nil }
      try store(Data(contentsOf: URL(filePath: other.folder("now/" + name))), at: path)
    case .launder:
      try FileManager.default.removeItem(atPath: path)
      let refusal = use(part)
      try store(whole, at: path)
      damage = .laundered(refusal: refusal, damage)
    }
    return damage
  }

  /// The user works with the vault as it is; gives what refused it.
  private func use(_ part: StoredPart) -> String? {
    do {
      let vault = try vault.opener.open(disk)
      defer { try? vault.close() }
      if part == .record(.deposit) {
        // Where what is stored while the vault is locked gets its mark.
        try vault.change { session in
          try session.addDeposit(session.resolve(VaultPath("docs/target")).number)
        }
      }
      var held = HeldFiles()
      _ = try vault.wholeContents(of: VaultPath("docs/target"))
      // One change, where the part would be written: what came before a refusal would stay.
      let change: VaultChange =
        switch part {
        case .record(.setting): .set(setting: "one", to: [9])
        case .record(.attribute): .setAttribute(path: "docs/target", name: "user.one", to: [9])
        case .record(.mapDirectory): .write(path: "sparse", offset: 3 << 30, bytes: [9])
        case .record(.inode): .rename(path: "docs/target", to: "docs/elsewhere")
        default: .put(path: "docs/small", bytes: [9], permissions: 0o600)
        }
      try change.apply(to: vault, holding: &held, scratch: self.vault.folder("scratch"))
      try vault.commit()
      return nil
    } catch {
      return text(error)
    }
  }
}

extension Data {
  fileprivate var flipped: Data {
    var bytes = self
    bytes[bytes.count / 2] ^= 0x40
    return bytes
  }
}
