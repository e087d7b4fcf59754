import CofferFiles
import CofferKeys
import CofferSystem
import CofferVaultTestSupport
import Foundation

@testable import CofferVault

/// Opens what a crash left, and holds it against what may be there.
struct CrashCheck {
  /// What is wrong with the vault.
  struct Damage: Error, CustomStringConvertible { let description: String }

  let opener: CrashedVault
  /// Holds `vault` and `keys`; may be changed.
  let folder: String

  /// The number of the state that was found. Throws ``Damage``, or what the vault throws.
  ///
  /// - Parameters:
  ///   - states: by their numbers.
  ///   - allowed: from what was durable to what was begun.
  ///   - changing: whether the vault is worked with afterwards, and opened again.
  func state(_ states: [ExpectedVault], allowed: [Int], changing: Bool) throws -> Int {
    let vault = try opener.open(folder)
    var found: ExpectedVault
    do {
      defer { try? vault.close() }
      guard !vault.isReadOnly else { throw Damage(description: "older than its anchor") }
      found = try ExpectedVault(reading: vault)
      try requireNothingLeft(vault, found)
    }
    guard let state = allowed.last(where: { states[$0] == found }) else {
      if let other = states.firstIndex(of: found) {
        throw Damage(description: "state \(other) was found, and not one of \(allowed)")
      }
      let differences = allowed.map { "from state \($0): \(found.difference(from: states[$0]))" }
      throw Damage(description: "no state that was committed; \(differences.joined(separator: "; "))")
    }
    if changing { try change(found) }
    return state
  }

  /// A backup that a crash cut short is no vault, or all of `expected`; one that was finished is all of it.
  ///
  /// - Parameter verifying: whether it is verified as well, which takes as long as all the rest.
  func checkBackup(_ backup: String, _ expected: ExpectedVault, isFinished: Bool, verifying: Bool) throws {
    let vault: Vault
    do {
      vault = try opener.open(folder, backup)
    } catch VaultError.noVault, VaultError.notAVault {
      if isFinished { throw Damage(description: "a finished backup is no vault") }
      return
    }
    defer { try? vault.close() }
    let found = try ExpectedVault(reading: vault)
    guard found == expected else { throw Damage(description: "the backup: \(found.difference(from: expected))") }
    guard verifying else { return }
    let report = try vault.verify(isDeep: true)
    guard report.isClean else { throw Damage(description: "the backup: \(report.damages.map(\.what))") }
  }

  /// No object without a file, no removal that is still to be done.
  private func requireNothingLeft(_ vault: Vault, _ found: ExpectedVault) throws {
    var objects: Set<UInt64> = []
    for case (let path, .file) in found.nodes {
      let content = try vault.look { try $0.resolve(VaultPath(path)).content }
      if case .object(let object, _) = content { objects.insert(object.number) }
    }
    let stored = try FileManager.default.subpathsOfDirectory(atPath: folder + "/vault/objects")
      .filter { $0.contains("/") }
    guard stored.count == objects.count else {
      throw Damage(description: "\(stored.count) objects for \(objects.count) files that have one")
    }
    guard try vault.look({ try $0.pendingRemovals().isEmpty }) || vault.isReadOnly else {
      throw Damage(description: "a removal is still to be done")
    }
  }

  private func change(_ found: ExpectedVault) throws {
    var expected = found
    var held = HeldFiles()
    let changes = [
      VaultChange.put(path: "after the crash", bytes: [UInt8](repeating: 7, count: 5000), permissions: 0o600),
      .makeFolder(path: "made after the crash"),
    ]
    let vault = try opener.open(folder)
    do {
      defer { try? vault.close() }
      for change in changes {
        change.apply(to: &expected)
        try change.apply(to: vault, holding: &held, scratch: folder + "/scratch")
      }
      try vault.commit()
    }
    let again = try opener.open(folder)
    defer { try? again.close() }
    let reread = try ExpectedVault(reading: again)
    guard reread == expected, !again.isReadOnly else {
      throw Damage(description: "after a change: \(reread.difference(from: expected))")
    }
    try requireNothingLeft(again, reread)
    let report = try again.verify(isDeep: true)
    guard report.isClean, report.strayRecordCount == 0 else {
      throw Damage(
        description: "verification: \(report.damages.map(\.what)), \(report.strayRecordCount) stray records")
    }
  }
}
