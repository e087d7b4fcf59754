import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// What a commit does, and when.
@Suite struct CommitTests {
  // MARK: A full disk

  @Test(.enabled(if: MountedDisk.isPossible, "a disk that fills up is mounted for this, which needs root"))
  func `on a full disk something can be removed, and that makes room`() throws {
    let fixture = try VaultFixture()
    let disk = try MountedDisk(in: fixture.folder, mebibytes: 16)
    let vault = try Vault.create(
      at: disk.path + "/vault", keyStore: fixture.keyStore, passcode: VaultFixture.passcode(),
      derivation: VaultFixture.derivation())
    try vault.importFile(fixture.source([UInt8](repeating: 1, count: 5 << 20)), to: VaultPath("large"))
    try vault.importFile(fixture.source([UInt8](repeating: 2, count: 500)), to: VaultPath("small"))
    try vault.commit()
    try disk.fill()
    #expect(throws: VaultError.full) {
      try vault.importFile(fixture.source([UInt8](repeating: 3, count: 1 << 20)), to: VaultPath("more"))
      try vault.commit()
    }
    try vault.remove(VaultPath("large"))
    try vault.commit()
    #expect(try TamperTests.objects(disk.path + "/vault").isEmpty)
    try vault.importFile(fixture.source([UInt8](repeating: 3, count: 1 << 20)), to: VaultPath("more"))
    try vault.close()
    let again = try Vault.open(
      at: disk.path + "/vault", keyStore: fixture.keyStore, passcode: { VaultFixture.passcode() })
    #expect(try Set(again.list(.root).map(\.name)) == [Array("small".utf8), Array("more".utf8)])
    #expect(try again.contents(of: VaultPath("small")) == [UInt8](repeating: 2, count: 500))
  }

  @Test(.enabled(if: MountedDisk.isPossible, "a disk that fills up is mounted for this, which needs root"))
  func `a commit that found the disk full loses nothing and can be made again`() throws {
    let fixture = try VaultFixture()
    let disk = try MountedDisk(in: fixture.folder, mebibytes: 16)
    let vault = try Vault.create(
      at: disk.path + "/vault", keyStore: fixture.keyStore, passcode: VaultFixture.passcode(),
      derivation: VaultFixture.derivation())
    // Rows that the index's log has no room for yet.
    for number in 0..<3 {
      let path = try VaultPath("f\(number)")
      let file = try vault.importFile(fixture.source([1, 2, 3]), to: path)
      try vault.setExtendedAttribute(
        Array("user.large".utf8), of: file.number, to: [UInt8](repeating: 5, count: 60_000))
    }
    // No ballast: whatever room there was is gone.
    try FileManager.default.removeItem(atPath: disk.path + "/vault/ballast")
    try disk.fill()
    for _ in 0..<2 { #expect(throws: VaultError.full) { try vault.commit() } }
    #expect(try vault.list(.root).count == 3)
    try FileManager.default.removeItem(atPath: disk.path + "/filler")
    try vault.close()
    let again = try Vault.open(
      at: disk.path + "/vault", keyStore: fixture.keyStore, passcode: { VaultFixture.passcode() })
    #expect(try again.list(.root).count == 3)
  }

  // MARK: Nobody asks

  private final class ManualScheduler: Scheduler {
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void) {
      waiting.withLock { $0.append(body) }
    }

    /// Runs what is waiting; returns how much it was.
    func run() -> Int {
      let bodies = waiting.withLock { waiting in
        defer { waiting = [] }
        return waiting
      }
      for body in bodies { body() }
      return bodies.count
    }
  }

  @Test func `a change does not wait for a commit for ever`() throws {
    let fixture = try VaultFixture()
    let scheduler = ManualScheduler()
    var options = VaultOptions()
    options.scheduler = scheduler
    let vault = try fixture.create(options: options)
    try vault.makeDirectory(at: VaultPath("a"))
    try vault.makeDirectory(at: VaultPath("b"))
    #expect(try fixture.namesAfterCrash(copyingTo: "before") == [])
    #expect(scheduler.run() == 1)
    #expect(try fixture.namesAfterCrash(copyingTo: "after") == ["a", "b"])
    try vault.makeDirectory(at: VaultPath("c"))
    #expect(scheduler.run() == 1)
    #expect(try fixture.namesAfterCrash(copyingTo: "again") == ["a", "b", "c"])
    try vault.close()
    #expect(scheduler.run() == 0)
  }

  /// Opens nothing while there are no descriptors.
  private final class Descriptors: FaultPlan {
    static let error = VaultError.system(SystemError(code: EMFILE, call: "open"))
    /// How many openings fail next.
    private let failing = Atomic(0)
    /// Called at each opening.
    let watch = Mutex<(@Sendable () -> Void)?>(nil)

    func willCall(_ call: SystemCall) throws(SystemError) {
      if call == .open, let look = watch.withLock({ $0 }) { look() }
      guard call == .open, failing.load(ordering: .relaxed) > 0 else { return }
      failing.subtract(1, ordering: .relaxed)
      throw SystemError(code: EMFILE, call: "open")
    }

    func fail(_ count: Int = .max) { failing.store(count, ordering: .relaxed) }
  }

  @Test func `content that gets no descriptor waits up to a bound, and is stored when there are some`() throws {
    let fixture = try VaultFixture()
    let (scheduler, descriptors) = (ManualScheduler(), Descriptors())
    var options = VaultOptions()
    options.scheduler = scheduler
    let vault = try fixture.create(files: FileSystem(faults: descriptors), options: options)
    _ = scheduler.run()
    descriptors.fail()
    func content(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number % 251), count: 100_000) }
    var count = 0
    let open = try vault.createFile(at: VaultPath("open"))
    try open.write(content(0), at: 0)
    #expect(throws: Descriptors.error) { try open.sync() }
    #expect(throws: Descriptors.error) {
      while count < 1000 {
        let file = try vault.createFile(at: VaultPath("\(count)"))
        try file.write(content(count), at: 0)
        count += 1
        try? file.close()
      }
    }
    // 8 MiB, and what was written last.
    #expect(count > 80 && count < 90)
    // Tried again and again, though nobody changes anything.
    for _ in 0..<3 { #expect(scheduler.run() == 1) }
    descriptors.fail(0)
    #expect(scheduler.run() == 1)
    // Told before, and stored since.
    try open.sync()
    let found = try fixture.openedAfterCrash(copyingTo: "copy")
    for number in 0..<count { #expect(try found.contents(of: VaultPath("\(number)")) == content(number), "\(number)") }
  }

  @Test func `a commit that gets no descriptor breaks no file, and is made again`() throws {
    let fixture = try VaultFixture()
    let descriptors = Descriptors()
    let vault = try fixture.create(files: FileSystem(faults: descriptors))
    let file = try vault.createFile(at: VaultPath("file"))
    try file.write([UInt8](repeating: 1, count: 100_000), at: 0)
    try vault.joinContent(of: vault.attributes(at: VaultPath("file")).number)
    descriptors.fail()
    #expect(throws: Descriptors.error) { try vault.commit() }
    try file.write([2], at: 7)
    descriptors.fail(0)
    // It has not been told of the failure.
    #expect(throws: Descriptors.error) { try file.sync() }
    try file.write([3], at: 8)
    try file.sync()
    #expect(try fixture.openedAfterCrash(copyingTo: "copy").contents(of: VaultPath("file"))[6...9] == [1, 2, 3, 1])
  }

  @Test func `what finds a descriptor behind others is stored when the vault is closed`() throws {
    let fixture = try VaultFixture()
    let descriptors = Descriptors()
    let vault = try fixture.create(files: FileSystem(faults: descriptors))
    let names = ["a", "b", "c", "d", "e"]
    descriptors.fail()
    for name in names {
      let file = try vault.createFile(at: VaultPath(name))
      try file.write([UInt8](repeating: 1, count: 100_000), at: 0)
      #expect(throws: Descriptors.error) { try file.close() }
    }
    descriptors.fail(0)
    // Whoever is stored is let go of before the next needs a descriptor.
    let numbers = try names.map { try vault.attributes(at: VaultPath($0)).number }
    let most = Mutex(0)
    let count: @Sendable () -> Void = { [weak vault] in
      let held = numbers.compactMap { vault?.files.node($0) }.count { !$0.hasChanges.load(ordering: .acquiring) }
      most.withLock { $0 = max($0, held) }
    }
    descriptors.watch.withLock { $0 = count }
    try vault.commit()
    descriptors.watch.withLock { $0 = nil }
    #expect(most.withLock { $0 } == 0)

    let late = ["f", "g", "h", "i", "j"]
    descriptors.fail()
    for name in late {
      let file = try vault.createFile(at: VaultPath(name))
      try file.write([UInt8](repeating: 1, count: 100_000), at: 0)
      #expect(throws: Descriptors.error) { try file.close() }
    }
    descriptors.fail(3)
    try vault.close()
    let again = try fixture.open()
    for name in names + late {
      #expect(try again.contents(of: VaultPath(name)) == [UInt8](repeating: 1, count: 100_000))
    }
  }

  // MARK: The anchor

  private final class ManualTime: TimeSource {
    private let seconds = Atomic<Int64>(1_700_000_000)
    func now() -> Timestamp { Timestamp(seconds: seconds.load(ordering: .relaxed)) }
    func advance(_ count: Int64) { seconds.add(count, ordering: .relaxed) }
  }

  @Test func `the anchor follows commits at a bounded rate, and is there at the end`() throws {
    let fixture = try VaultFixture()
    let time = ManualTime()
    let vault = try fixture.create(time: time)
    func anchor() throws -> [UInt8]? {
      try fixture.keyStore.read(.anchor, of: vault.id)?.withUnsafeBytes { Array($0) }
    }
    try vault.makeDirectory(at: VaultPath("a"))
    try vault.commit()
    let first = try anchor()
    try vault.makeDirectory(at: VaultPath("b"))
    try vault.commit()
    #expect(try anchor() == first)
    time.advance(1)
    try vault.makeDirectory(at: VaultPath("c"))
    try vault.commit()
    let second = try anchor()
    #expect(second != first)
    // A clock that is set back does not hold it still.
    time.advance(-1000)
    try vault.makeDirectory(at: VaultPath("d"))
    try vault.commit()
    let third = try anchor()
    #expect(third != second)
    try vault.makeDirectory(at: VaultPath("e"))
    try vault.close()
    #expect(try anchor() != third)
    #expect(try fixture.open().isReadOnly == false)
  }

  @Test func `a backup that was put back is changed only where that is accepted, and then it is the vault`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("old"))
    try vault.close()
    try FileManager.default.copyItem(atPath: fixture.vaultPath, toPath: fixture.folder("backup"))
    let newer = try fixture.open()
    try newer.makeDirectory(at: VaultPath("new"))
    try newer.close()
    try FileManager.default.moveItem(atPath: fixture.vaultPath, toPath: fixture.folder("newer"))
    try FileManager.default.moveItem(atPath: fixture.folder("backup"), toPath: fixture.vaultPath)
    let refused = try fixture.open()
    #expect(refused.isReadOnly)
    #expect(throws: VaultError.olderThanAnchor) { try refused.makeDirectory(at: VaultPath("x")) }
    try refused.close()

    var options = VaultOptions()
    options.acceptsOlderState = true
    let accepted = try fixture.open(options: options)
    #expect(!accepted.isReadOnly)
    try accepted.makeDirectory(at: VaultPath("x"))
    try accepted.close()
    let again = try fixture.open()
    #expect(!again.isReadOnly)
    #expect(try Set(again.list(.root).map(\.name)) == [Array("old".utf8), Array("x".utf8)])
    try again.close()

    // What was the newest state is now a copy that went another way.
    try FileManager.default.removeItem(atPath: fixture.vaultPath)
    try FileManager.default.moveItem(atPath: fixture.folder("newer"), toPath: fixture.vaultPath)
    #expect(try fixture.open().isReadOnly)
  }

  @Test func `commits of many threads at the same time become few`() async throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<8 {
        group.addTask {
          for number in 0..<20 {
            try vault.makeDirectory(at: VaultPath("w\(worker)-\(number)"))
            try vault.commit()
          }
        }
      }
      try await group.waitForAll()
    }
    try vault.close()
    #expect(try fixture.open().list(.root).count == 160)
  }
}

extension VaultFixture {
  /// The names in the root folder of a vault that lost its process now.
  func namesAfterCrash(copyingTo name: String) throws -> [String] {
    try openedAfterCrash(copyingTo: name).list(.root).map { String(decoding: $0.name, as: UTF8.self) }.sorted()
  }

  func openedAfterCrash(copyingTo name: String) throws -> Vault {
    let copy = folder(name)
    try FileManager.default.createDirectory(
      atPath: copy, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for part in ["vault", "keys"] {
      try FileManager.default.copyItem(atPath: folder(part), toPath: copy + "/" + part)
    }
    return try Vault.open(
      at: copy + "/vault", keyStore: FileKeyStore(path: copy + "/keys"), passcode: { Self.passcode() })
  }
}
