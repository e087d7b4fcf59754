import CofferFiles
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferSystem
@testable import CofferVault

/// Calls that find no room on the disk, at the moments that a test chooses. ``FullDiskVaultTests`` fill a disk indeed.
@Suite struct DiskRoomTests {
  /// Writes to files fail for want of room while it is told so, and commits that need a folder synced.
  private final class NoRoom: FaultPlan {
    private let isFull = Atomic(false)
    func set(_ isFull: Bool) { self.isFull.store(isFull, ordering: .relaxed) }

    func willCall(_ call: SystemCall) throws(SystemError) {
      guard [.write, .sync].contains(call), isFull.load(ordering: .relaxed) else { return }
      throw SystemError(code: ENOSPC, call: call.rawValue)
    }
  }

  @Test(arguments: [true, false])
  func `the object of a file that could not join goes with the file's last name`(isOpen: Bool) throws {
    let fixture = try VaultFixture()
    let disk = NoRoom()
    let vault = try fixture.create(files: FileSystem(faults: disk))
    let file = try vault.createFile(at: VaultPath("file"))
    try file.write([UInt8](repeating: 7, count: 700_000), at: 0)
    #expect(try TamperTests.objects(fixture.vaultPath).count == 1)
    disk.set(true)
    if isOpen {
      try vault.remove(VaultPath("file"))
      try file.close()
    } else {
      #expect(throws: VaultError.full) { try file.close() }
      try vault.remove(VaultPath("file"))
    }
    // Without a commit, for which there may be no room.
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
    disk.set(false)
    try vault.commit()
    try fixture.copyAsAfterCrash()
    let crashed = try fixture.openAfterCrash()
    #expect(try crashed.verify(isDeep: true).isClean)
    try crashed.close()
    try vault.close()
  }

  /// A change in place.
  static let privately: AttributeChanges = {
    var changes = AttributeChanges()
    changes.permissions = 0o600
    return changes
  }()

  @Test func `what is changed in place waits for room, but leaves some to what is removed`() throws {
    let fixture = try VaultFixture()
    let disk = NoRoom()
    let vault = try fixture.create(files: FileSystem(faults: disk))
    for name in ["file", "other"] {
      // In an object, whose folder is to be synced.
      try vault.importFile(fixture.source([UInt8](repeating: 7, count: 100_000)), to: VaultPath(name))
    }
    disk.set(true)
    func isChanged() throws -> Bool {
      do {
        try vault.setAttributes(Self.privately, at: VaultPath("file"))
        return true
      } catch VaultError.full {
        return false
      }
    }
    var count = 0
    while try isChanged(), count < 8192 { count += 1 }
    // Looked at when a commit is tried, and those become rarer.
    #expect(count >= 1000 && count < 8192)
    try vault.remove(VaultPath("other"))
    #expect(throws: VaultError.full) { try vault.commit() }
    disk.set(false)
    // Soon, and by itself: nothing else is done meanwhile.
    #expect(try (0..<10_000_000).contains { _ in try isChanged() })
    try vault.commit()
    #expect(try vault.attributes(at: VaultPath("file")).permissions == 0o600)
    #expect(throws: VaultError.notFound) { try vault.attributes(at: VaultPath("other")) }
    try vault.close()
  }

  @Test func `numbers that no disk has are no reason to end`() {
    let space = FileSystemSpace(
      blockSize: 1 << 20, blocks: .max, freeBlocks: .max, availableBlocks: .max, files: .max, freeFiles: .max)
    #expect(space.bytesForProcess == .max)
  }
}
