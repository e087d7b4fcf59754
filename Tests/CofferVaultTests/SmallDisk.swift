import CofferFiles
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferSystem
@testable import CofferVault

/// A vault on a small disk, and what should be in it.
final class SmallDisk {
  let fixture: VaultFixture
  let disk: MountedDisk
  var vault: Vault
  var files: [String: [UInt8]] = [:]
  var folders: Set<String> = []
  var refusalCount = 0
  var generator: SeededGenerator

  init(mebibytes: Int, files: Int? = nil, seed: UInt64, faults: FileSystem = FileSystem()) throws {
    fixture = try VaultFixture()
    disk = try MountedDisk(in: fixture.folder, mebibytes: mebibytes, files: files)
    generator = SeededGenerator(seed: seed)
    vault = try Vault.create(
      at: disk.path + "/vault", keyStore: fixture.keyStore, passcode: VaultFixture.passcode(),
      derivation: VaultFixture.derivation(), files: faults, options: TestVault.options)
  }

  func number(below count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }

  /// Runs what may find no room; whether there was some.
  func found(_ body: () throws -> Void) throws -> Bool {
    do {
      try body()
      return true
    } catch VaultError.full {
      refusalCount += 1
      return false
    }
  }

  /// A file that was stored before the disk was filled.
  func openOnFullDisk(_ path: VaultPath, _ bytes: [UInt8]) throws -> OpenFile {
    try vault.importFile(fixture.source(bytes), to: path)
    try vault.commit()
    try disk.fill()
    return try vault.createFile(at: path)
  }

  func step() throws {
    let name = "\(number(below: 80))"
    let path = try VaultPath(name)
    switch number(below: 20) {
    case 0..<5:
      let bytes = generator.bytes([100, 5000, 60_000, 700_000, 2_000_000][number(below: 5)])
      if try found({ try vault.importFile(fixture.source(bytes), to: path, replacing: true) }) { files[name] = bytes }
    case 5..<10: try write(name, path)
    case 10..<15:
      // Never refused for want of room.
      if let name = files.keys.sorted().randomElement(using: &generator) {
        try vault.remove(VaultPath(name))
        files[name] = nil
      }
    case 15:
      let folder = "folder \(name)"
      if folders.contains(folder) {
        try vault.remove(VaultPath(folder))
        folders.remove(folder)
      } else if try found({ try vault.makeDirectory(at: VaultPath(folder)) }) {
        folders.insert(folder)
      }
    case 16: _ = try found { try vault.commit() }
    case 17: try disk.fill("filler \(name)")
    default:
      for name in try FileManager.default.contentsOfDirectory(atPath: disk.path) where name != "vault" {
        try FileManager.default.removeItem(atPath: disk.path + "/" + name)
      }
    }
  }

  /// Through a handle: nothing waits for its place on the disk when that is closed.
  private func write(_ name: String, _ path: VaultPath) throws {
    let bytes = generator.bytes([50, 3000, 40_000, 600_000][number(below: 4)])
    var file: OpenFile?
    guard try found({ file = try vault.createFile(at: path) }), let file else { return }
    let isWritten = try found {
      try file.truncate(to: 0)
      for start in stride(from: 0, to: bytes.count, by: 30_000) {
        try file.write(Array(bytes[start..<min(start + 30_000, bytes.count)]), at: UInt64(start))
      }
    }
    // What was taken is there, whether it has found its place yet or not.
    _ = try found { try file.close() }
    if isWritten {
      files[name] = bytes
    } else {
      try vault.remove(path)
      files[name] = nil
    }
  }

  func check(_ vault: Vault, sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(
      try Set(vault.list(.root).map { String(decoding: $0.name, as: UTF8.self) }) == folders.union(files.keys),
      sourceLocation: sourceLocation)
    for (name, bytes) in files {
      #expect(try vault.contents(of: VaultPath(name)) == bytes, "\(name)", sourceLocation: sourceLocation)
    }
  }
}
