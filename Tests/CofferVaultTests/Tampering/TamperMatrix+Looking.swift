import CofferFiles
import CofferKeys
import CofferSystem
import CofferVaultTestSupport
import Foundation
import GRDB

@testable import CofferVault

extension TamperMatrix {
  func probe(_ part: StoredPart, _ attack: Attack, _ damage: Damage) throws -> Cell {
    var errors: [String] = []
    if case .laundered(let refusal, _) = damage {
      guard let refusal else { throw Failure(description: "the user could write where something was taken away") }
      errors.append(refusal)
    }
    var unread: Set<String> = []
    do {
      let opened = try vault.opener.open(disk)
      defer { try? opened.close() }
      if opened.isReadOnly {
        errors.append(text(VaultError.olderThanAnchor))
        // What it shows is the older state, and it says so.
        if part == .indexFile, attack == .replay { return .found(errors[0], restIsRead: false) }
      }
      for (name, value) in vault.expected.settings.sorted(by: { $0.key < $1.key }) {
        do {
          guard try opened.setting(name) == value else { throw Failure(description: "a setting is another's") }
        } catch let error as VaultError { errors.append(text(error)) }
      }
      for (path, node) in vault.expected.nodes.sorted(by: { $0.key < $1.key }) {
        do { try read(path, node, opened) } catch let error as VaultError {
          errors.append(text(error))
          unread.insert(path)
        }
      }
      for path in TamperedVault.sparse {
        do { try readSparse(path, opened) } catch let error as VaultError { errors.append(text(error)) }
      }
      // What no file needs is found by whoever asks for it.
      if errors.isEmpty, let damage = try opened.verify(isDeep: true).damages.first {
        errors.append("by a verification: " + text(VaultError.damaged(what: damage.what)))
      }
    } catch let error as VaultError {
      errors.append(text(error))
      unread = Set(vault.expected.nodes.keys)
    }
    guard let first = errors.first else {
      if let reason = harmless(part, attack) { return .harmless(reason) }
      throw Failure(description: "nothing was found")
    }
    let rest = vault.expected.nodes.keys.filter { !needs($0, damage) }
    return .found(first, restIsRead: !rest.isEmpty && unread.isDisjoint(with: rest))
  }

  /// Finds both places with data, and reads them.
  private func readSparse(_ path: String, _ opened: Vault) throws {
    let file = try opened.open(VaultPath(path), .reading)
    var place: UInt64 = 0
    for number in 1...2 {
      guard let next = try file.nextData(from: place), next == VaultChange.place(number) else {
        throw Failure(description: "data in a sparse file is not found")
      }
      var bytes = [UInt8](repeating: 0, count: 100)
      let count = try bytes.withUnsafeMutableBytes { raw in Result { try file.read(at: next, into: raw) } }.get()
      guard count == 100, bytes == [UInt8](repeating: UInt8(number), count: 100) else {
        throw Failure(description: "a sparse file is another's, or an older one")
      }
      place = next + (1 << 20)
    }
  }

  private func read(_ path: String, _ node: ExpectedVault.Node, _ opened: Vault) throws {
    switch node {
    case .folder:
      let prefix = path + "/"
      let names = vault.expected.nodes.keys.filter { $0.hasPrefix(prefix) && !$0.dropFirst(prefix.count).contains("/") }
      let found = try opened.list(VaultPath(path)).map { prefix + String(decoding: $0.name, as: UTF8.self) }
      guard Set(found) == Set(names), found.count == names.count else {
        throw Failure(description: "names are missing, or there are others")
      }
    case .file(let bytes, _, let attributes):
      guard try opened.wholeContents(of: VaultPath(path)) == bytes else {
        throw Failure(description: "a file is another's, or an older one")
      }
      let number = try opened.attributes(at: VaultPath(path)).number
      for (name, value) in attributes {
        guard try opened.extendedAttribute(Array(name.utf8), of: number) == value else {
          throw Failure(description: "an attribute is another's, or an older one")
        }
      }
    case .symbolicLink: break
    }
  }

  private func needs(_ path: String, _ damage: Damage) -> Bool {
    switch damage {
    case .everything: true
    case .nothing: false
    case .files(let files): files.contains(path)
    case .laundered(_, let damage): needs(path, damage)
    case .rows(let rows):
      // What cannot be told apart from its neighbours goes with them.
      vault.rows(of: path).contains { row in
        rows.contains { damaged in
          damaged.table == .bucket
            ? Int64(row.bucket / VaultFormat.bucketsPerPage).databaseValue == damaged.key : row.bucket == damaged.bucket
        }
      }
    }
  }

  func text(_ error: any Error) -> String {
    let error = VaultError.wrapping(error)
    let text = if case .damaged(let what) = error { what } else { "\(error)" }
    // Numbers of buckets and pages are the vault's own.
    return text.replacing(/[0-9]+/, with: "n")
  }
}
