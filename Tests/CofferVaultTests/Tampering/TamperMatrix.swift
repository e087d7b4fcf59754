import CofferFiles
import CofferKeys
import CofferSystem
import CofferVaultTestSupport
import Foundation
import GRDB

@testable import CofferVault

/// Tries every attack on every stored part, one at a time, on a copy of one vault.
struct TamperMatrix {
  enum Cell: Equatable {
    /// An error said so, with this text; and whether all files were read that do not need what was changed.
    case found(String, restIsRead: Bool)
    /// Nothing changes for the reader, for this reason.
    case harmless(String)
    /// There is nothing to do, for this reason.
    case impossible(String)
  }

  /// What went wrong: something false was read, or nothing was found.
  struct Failure: Error, CustomStringConvertible { let description: String }

  let vault: TamperedVault
  let other: TamperedVault
  var disk: String { vault.folder("disk") }

  init(holdsBuckets: Bool = false) throws {
    vault = try .generic(holdsBuckets: holdsBuckets)
    other = try TamperedVault(seed: 2, holdsBuckets: holdsBuckets)
  }

  func cell(_ part: StoredPart, _ attack: Attack) throws -> Cell {
    if let reason = impossible(part, attack) { return .impossible(reason) }
    // A mark is done by the next opening or unlock, so that only a crash leaves one at rest.
    let base = [.record(.pending), .record(.deposit)].contains(part) ? "crashed" : "now"
    if try FileSystem().status(of: disk) != nil { try FileManager.default.removeItem(atPath: disk) }
    try FileManager.default.copyItem(atPath: vault.folder(base), toPath: disk)
    let damage: Damage?
    switch part {
    case .record(let kind):
      damage = try attackRow(part, vault.targets[kind] ?? [], attack)
    case .salt: damage = try attackRow(part, try salts(), attack)
    default: damage = try attackFile(part, attack)
    }
    guard let damage else { return .impossible("has no older version") }
    return try probe(part, attack, damage)
  }

  // MARK: What cannot be, and what does not matter

  private func impossible(_ part: StoredPart, _ attack: Attack) -> String? {
    switch (part, attack) {
    case (.record(let kind), _) where vault.targets[kind]?.isEmpty ?? true: "no operation makes one yet"
    case (.record(.root), .swap), (.record(.root), .duplicate), (.indexFile, .swap): "there is one"
    case (.item(.enrolment), _): "the gate reads it, not the vault"
    case (.item(.place), _): "a wipe reads it and nothing else, and refuses where it is not what it was"
    case (.item(.escrow), _): "what cannot be opened there counts as absent: nothing is cleared then"
    case (.item(.wiped), _): "there once a wipe has begun, when nothing opens any more"
    default: nil
    }
  }

  /// Why nobody needs to notice.
  func harmless(_ part: StoredPart, _ attack: Attack) -> String? {
    switch (part, attack) {
    case (.object, .extend): "bytes behind the last slot mean nothing"
    case (.indexFile, .extend): "pages behind the last one mean nothing"
    case (.salt, .duplicate), (.object, .duplicate), (.description, .duplicate), (.keybag, .duplicate),
      (.indexFile, .duplicate), (.item, .duplicate):
      "nothing refers to it"
    case (.item(.anchor), .replay): "the key store keeps what it was given; an older anchor accepts what is newer"
    default: nil
    }
  }

  /// What the attack touched: files that need none of it must stay readable.
  enum Damage {
    case everything
    case nothing
    case rows(Set<TamperedVault.RowReference>)
    case files(Set<String>)
    /// The user wrote between, and this came of it.
    indirect case laundered(refusal: String?, Damage)
  }
}

extension TamperMatrix.Damage {
  /// As if everything depended on it.
  var widened: Self {
    if case .laundered(let refusal, _) = self { .laundered(refusal: refusal, .everything) } else { .everything }
  }
}
