import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// A system call fails at every possible place, once.
@Suite struct FaultTests {
  /// Fails the call with this number, counted from when it is armed.
  final class FailingCall: FaultPlan {
    private let state = Mutex<(left: Int?, failed: SystemCall?)>((nil, nil))
    private let code: CInt

    init(code: CInt) { self.code = code }

    func arm(_ count: Int) { state.withLock { $0 = (count, nil) } }
    var failed: SystemCall? { state.withLock { $0.failed } }

    func willCall(_ call: SystemCall) throws(SystemError) {
      let fails = state.withLock { state -> Bool in
        guard let left = state.left else { return false }
        state.left = left == 0 ? nil : left - 1
        if left == 0 { state.failed = call }
        return left == 0
      }
      if fails { throw SystemError(code: code, call: call.rawValue) }
    }
  }

  @Test(arguments: [ENOSPC, EIO]) func `a failed call loses nothing that was stored and leaves nothing half`(code: CInt)
    throws
  {
    var generator = SeededGenerator(seed: 5)
    let (kept, added) = (generator.bytes(50_000), generator.bytes(700_000))
    var failures: Set<SystemCall> = []
    for count in 0..<200 {
      let plan = FailingCall(code: code)
      let (fixture, vault) = try Self.vaultOfTwoFolders(plan)
      try vault.importFile(fixture.source(kept), to: VaultPath("kept"))
      try vault.commit()
      let source = try fixture.source(added, name: "added")
      plan.arm(count)
      var isStored = false
      do {
        try vault.importFile(source, to: VaultPath("added"))
        try vault.commit()
        isStored = true
        try vault.close()
      } catch {
        if code == ENOSPC { #expect(error as? VaultError == .full, "call \(count)") }
        try? vault.close()
      }
      let failed = plan.failed
      if let failed { failures.insert(failed) }
      plan.arm(1_000_000)
      let again = try fixture.open()
      #expect(try again.contents(of: VaultPath("kept")) == kept, "call \(count)")
      let names = try again.list(.root).map(\.name)
      if names.contains(Array("added".utf8)) {
        #expect(try again.contents(of: VaultPath("added")) == added, "call \(count)")
      } else {
        #expect(!isStored, "call \(count): reported stored, and is gone")
      }
      try again.close()
      let objects = try TamperTests.objects(fixture.vaultPath).count
      #expect(objects == names.count, "call \(count) leaves \(objects) objects for \(names.count) files")
      // Past the last call of the operation nothing fails any more.
      if failed == nil { break }
      #expect(count < 199, "the operation has more calls than were tried")
    }
    #expect(failures.isSuperset(of: [.open, .write, .sync, .makeDirectory]))
  }

  /// A new vault whose first two objects lie in folders of their own, so that in each the same calls are made.
  private static func vaultOfTwoFolders(_ plan: FailingCall) throws -> (VaultFixture, Vault) {
    while true {
      let fixture = try VaultFixture()
      let vault = try fixture.create(files: FileSystem(faults: plan))
      let next = try vault.look { $0.root.nextObject }
      let folders = Set([next, next + 1].map { vault.objects.objectPlace($0).folder })
      if folders.count == 2 { return (fixture, vault) }
      try vault.close()
    }
  }

  @Test func `a replacement that fails anywhere leaves the old file or the new`() throws {
    var generator = SeededGenerator(seed: 6)
    let (old, new) = (generator.bytes(60_000), generator.bytes(90_000))
    for count in 0..<200 {
      let fixture = try VaultFixture()
      let plan = FailingCall(code: ENOSPC)
      // The key store fails too.
      let vault = try Vault.create(
        at: fixture.vaultPath, keyStore: FileKeyStore(path: fixture.folder("keys"), files: FileSystem(faults: plan)),
        passcode: VaultFixture.passcode(), derivation: VaultFixture.derivation(), files: FileSystem(faults: plan))
      try vault.importFile(fixture.source(old), to: VaultPath("f"))
      try vault.commit()
      let source = try fixture.source(new, name: "new")
      plan.arm(count)
      var isReported = false
      do {
        try vault.importFile(source, to: VaultPath("f"), replacing: true)
        try vault.commit()
        isReported = true
      } catch {}
      // As a program does that was told of a failure.
      try? vault.close()
      let failed = plan.failed
      let again = try fixture.open()
      let found = try again.contents(of: VaultPath("f"))
      #expect(found == new || (found == old && !isReported), "call \(count), \(failed?.rawValue ?? "none")")
      try again.close()
      #expect(try TamperTests.objects(fixture.vaultPath).count == 1, "call \(count)")
      if failed == nil { break }
      #expect(count < 199, "the operation has more calls than were tried")
    }
  }

  @Test func `a cancelled creation leaves no vault, no keys and no folder that was not there`() throws {
    for (wanted, isThere) in [(0, false), (1, false), (0, true), (1, true)] {
      let fixture = try VaultFixture()
      let path = isThere ? fixture.vaultPath : fixture.vaultPath + "/in/a/new"
      if isThere { try FileSystem().makeDirectory(path) }
      var asked = 0
      #expect(throws: VaultError.cancelled, "\(wanted)") {
        try Vault.create(
          at: path, keyStore: fixture.keyStore, passcode: VaultFixture.passcode(),
          derivation: VaultFixture.derivation(), options: TestVault.options
        ) {
          asked += 1
          return asked > wanted
        }
      }
      #expect(asked == wanted + 1)
      #expect(try (FileSystem().status(of: fixture.vaultPath) != nil) == isThere)
      if isThere { #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.vaultPath) == []) }
      #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.folder("keys")) == [])
      try fixture.create().close()
    }
  }

  @Test func `a cancelled import leaves nothing`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let source = try fixture.source([UInt8](repeating: 1, count: 3_000_000))
    let seen = Atomic(0)
    let control = TransferControl(
      progress: { seen.wrappingAdd($0, ordering: .relaxed) }, isCancelled: { seen.load(ordering: .relaxed) > 0 })
    #expect(throws: VaultError.cancelled) { try vault.importFile(source, to: VaultPath("f"), control: control) }
    #expect(try vault.list(.root).isEmpty)
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `a crash during an import that others commit beside leaves no object`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    // As many objects as fit between two commits, and one of many chunks.
    for number in 0..<62 {
      try vault.importFile(fixture.source([UInt8](repeating: 1, count: 5000)), to: VaultPath("f\(number)"))
    }
    let copied = Mutex(false)
    let control = TransferControl(
      progress: { _ in
        copied.withLock { copied in
          if copied { return }
          copied = true
          #expect(throws: Never.self) {
            try vault.commit()
            try fixture.copyAsAfterCrash()
          }
        }
      })
    let large = try fixture.source([UInt8](repeating: 2, count: 5_000_000))
    try vault.importFile(large, to: VaultPath("large"), control: control)
    try vault.close()
    #expect(try TamperTests.objects(fixture.folder("crashed/vault")).count == 63)
    let crashed = try fixture.openAfterCrash()
    #expect(try crashed.list(.root).count == 62)
    try crashed.close()
    #expect(try TamperTests.objects(fixture.folder("crashed/vault")).count == 62)
  }

  @Test func `a source that changes its size is not stored`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    for (stated, actual) in [(100_000, 90_000), (100_000, 110_000), (10, 5), (5, 10)] {
      let source = try fixture.source([UInt8](repeating: 1, count: actual))
      let lying = ImportSource(
        descriptor: source.descriptor, byteCount: UInt64(stated), permissions: 0o600, modified: nil)
      #expect(throws: VaultError.sourceChanged) { try vault.importFile(lying, to: VaultPath("f")) }
    }
    #expect(try vault.list(.root).isEmpty)
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `a snapshot outlives the name and the replacement of its file`() throws {
    let fixture = try VaultFixture()
    var generator = SeededGenerator(seed: 3)
    let (first, second) = (generator.bytes(200_000), generator.bytes(100_000))
    let vault = try fixture.create()
    try vault.importFile(fixture.source(first), to: VaultPath("f"))
    var snapshot: FileSnapshot? = try vault.snapshot(of: VaultPath("f"))
    try vault.importFile(fixture.source(second), to: VaultPath("f"), replacing: true)
    try vault.commit()
    #expect(try vault.isCurrent(#require(snapshot), at: VaultPath("f")) == false)
    try vault.remove(VaultPath("f"))
    try vault.commit()
    var bytes = [UInt8](repeating: 0, count: first.count)
    let count = try bytes.withUnsafeMutableBytes { try #require(snapshot).read(at: 0, into: $0) }
    #expect(count == first.count && bytes == first)
    #expect(try TamperTests.objects(fixture.vaultPath).count == 1)
    snapshot = nil
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).isEmpty)
  }

  @Test func `many threads store and read side by side`() async throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        let source = try fixture.source([UInt8](repeating: UInt8(worker), count: 150_000), name: "source\(worker)")
        group.addTask {
          for round in 0..<5 {
            let path = try VaultPath("w\(worker)-\(round)")
            try vault.importFile(source, to: path)
            #expect(try vault.contents(of: path) == [UInt8](repeating: UInt8(worker), count: 150_000))
            if round.isMultiple(of: 2) { try vault.remove(path) }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try vault.list(.root).count == 8)
    try vault.close()
    #expect(try TamperTests.objects(fixture.vaultPath).count == 8)
  }
}
