import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Threads that meet at the worst moment, and failures that nobody asked about.
@Suite struct InterleavingTests {
  final class Manual: Scheduler {
    private let waiting = Mutex<[@Sendable () -> Void]>([])
    func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void) {
      waiting.withLock { $0.append(body) }
    }
    func run() {
      let bodies = waiting.withLock { waiting in
        defer { waiting = [] }
        return waiting
      }
      for body in bodies { body() }
    }
  }

  final class Stop: FaultPlan, @unchecked Sendable {
    let armed = Atomic(false)
    let reached = DispatchSemaphore(value: 0)
    let go = DispatchSemaphore(value: 0)
    func willCall(_ call: SystemCall) throws(SystemError) {
      if call == .punchHole, armed.exchange(false, ordering: .acquiringAndReleasing) {
        reached.signal()
        go.wait()
      }
    }
  }

  @Test func `space is not given back from under a file that is opened meanwhile`() throws {
    let fixture = try VaultFixture()
    let plan = Stop()
    let vault = try fixture.create(files: FileSystem(faults: plan), options: TestVault.options)
    let path = try VaultPath("f")
    let first = try vault.createFile(at: path, blockSizeExponent: 12)
    let number = try first.attributes.number
    try first.write([UInt8](repeating: 1, count: 64 * 4096), at: 0)
    try first.sync()
    try first.write([UInt8](repeating: 2, count: 10 * 4096), at: 10 * 4096)
    try first.close()
    plan.armed.store(true, ordering: .releasing)
    let done = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      try? vault.commit()
      done.signal()
    }
    plan.reached.wait()
    let reader = try vault.open(path, .reading)
    try reader.close()
    // A second node would not know what the first is about to give back.
    #expect(vault.files.node(number) != nil)
    plan.go.signal()
    let writer = try vault.open(path, .writing)
    try writer.write([UInt8](repeating: 3, count: 4 * 4096), at: 30 * 4096)
    try writer.sync()
    done.wait()
    #expect(throws: Never.self) { _ = try writer.read(4 * 4096, at: 30 * 4096) }
    try writer.close()
    try vault.close()
    let again = try fixture.open()
    #expect(throws: Never.self) { _ = try again.contents(of: path) }
    try again.close()
  }

  @Test func `what another thread has joined meanwhile is not joined again`() throws {
    // By then the file may have been changed through a node of its own.
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let file = try vault.createFile(at: VaultPath("f"))
    let node = try #require(vault.files.node(file.attributes.number))
    for round in 0..<200 {
      try file.write([UInt8(round)], at: 0)
      let count = node.joinCount
      let isComing = DispatchSemaphore(value: 0)
      let hasCome = DispatchSemaphore(value: 0)
      try node.writing.withLock { _ in
        Thread.detachNewThread {
          isComing.signal()
          try? node.join()
          hasCome.signal()
        }
        // It is likely to wait for `writing` then; where it does not, the round shows nothing.
        isComing.wait()
        for _ in 0..<100 { sched_yield() }
        try node.joinWhileWriting()
      }
      hasCome.wait()
      #expect(node.joinCount == count + 1)
    }
    try file.close()
    try vault.close()
  }

  @Test func `what the timer could not store is not reported as stored`() throws {
    let fixture = try VaultFixture()
    let log = CallLog()
    let scheduler = Manual()
    var options = VaultOptions()
    options.scheduler = scheduler
    let vault = try fixture.create(files: FileSystem(faults: log), options: options)
    let path = try VaultPath("f")
    let file = try vault.createFile(at: path)
    try file.write([UInt8](repeating: 1, count: 50_000), at: 0)
    try file.sync()
    scheduler.run()
    try file.write([UInt8](repeating: 2, count: 50_000), at: 0)
    log.fail(.sync, times: 1)
    scheduler.run()
    var said: [String] = []
    do {
      try vault.commit()
      said.append("commit succeeded")
    } catch { said.append("commit: \(error)") }
    do {
      try vault.close()
      said.append("vault close succeeded")
    } catch { said.append("vault close: \(error)") }
    do {
      try file.close()
      said.append("file close succeeded")
    } catch { said.append("file close: \(error)") }
    let again = try fixture.open()
    let content = try again.contents(of: path)
    #expect(content.first == 1)
    #expect(!said.contains("commit succeeded") && !said.contains("vault close succeeded"))
    try again.close()
  }

  final class Folders: FaultPlan, @unchecked Sendable {
    var names: [CInt: String] = [:]
    var synced: [String] = []
    var hook: (([String]) -> Void)?
    var willMakeFolder: (() -> Void)?
    var didMakeFolder: (() -> Void)?
    func willCall(_ call: SystemCall) throws(SystemError) {
      if call == .makeDirectory { willMakeFolder?() }
    }
    func observe(_ operation: StorageOperation) {
      switch operation {
      case .open(let number, let name, _, _): names[number] = String(decoding: name, as: UTF8.self)
      case .makeDirectory: didMakeFolder?()
      case .sync(let number):
        synced.append(names[number] ?? "?")
        hook?(synced)
      default: break
      }
    }
  }

  @Test func `a name that is made while its folder is synced is synced again`() throws {
    let folder = try TemporaryFolder()
    let plan = Folders()
    let files = FileSystem(faults: plan)
    try files.makeDirectories(folder("v"))
    let root = try files.open(folder("v"), .directory)
    try files.makeDirectory("objects", in: root)
    let store = try ObjectStore(files: files, vaultFolder: root, rowKeys: RowKeys(metadataKey: SecretKey()))
    plan.synced = []
    let a = store.objectPlace(1).folder
    let other = try #require((UInt64(2)...1000).first { store.objectPlace($0).folder != a })
    _ = try store.create(1)
    _ = try store.create(other)
    var late = ""
    plan.hook = { synced in
      guard synced.count == 2 else { return }
      plan.hook = nil
      // Another thread makes an object in the folder that has just been synced.
      late = synced[0]
      let number = ((other + 1)...100_000).first { store.objectPlace($0).folder == late }
      if let number { _ = try? store.create(number) }
    }
    try store.syncFolders()
    plan.synced = []
    try store.syncFolders()
    #expect(plan.synced.contains(late), "folder \(late) has a new object's name and is never synced")
  }

  /// A store with nothing to sync, and two objects that belong into one folder, which is not there.
  private func storeWithoutFolders(
    in folder: TemporaryFolder, _ plan: Folders
  ) throws -> (store: ObjectStore, one: UInt64, two: UInt64) {
    let files = FileSystem(faults: plan)
    try files.makeDirectories(folder("v"))
    let root = try files.open(folder("v"), .directory)
    try files.makeDirectory("objects", in: root)
    let store = try ObjectStore(files: files, vaultFolder: root, rowKeys: RowKeys(metadataKey: SecretKey()))
    let place = store.objectPlace(1).folder
    let two = try #require((UInt64(2)...100_000).first { store.objectPlace($0).folder == place })
    return (store, 1, two)
  }

  @Test func `a folder of objects that is made while a commit syncs is synced by the next`() throws {
    let folder = try TemporaryFolder()
    let plan = Folders()
    let (store, one, _) = try storeWithoutFolders(in: folder, plan)
    plan.willMakeFolder = {
      plan.willMakeFolder = nil
      // Another thread commits.
      #expect(throws: Never.self) { try store.syncFolders() }
      plan.synced = []
    }
    _ = try store.create(one)
    try store.syncFolders()
    #expect(plan.synced.contains("objects"))
  }

  @Test func `whoever finds a folder of objects that another has just made syncs its name`() throws {
    let folder = try TemporaryFolder()
    let plan = Folders()
    let (store, one, two) = try storeWithoutFolders(in: folder, plan)
    plan.willMakeFolder = {
      plan.willMakeFolder = nil
      #expect(throws: Never.self) { try store.syncFolders() }
      plan.synced = []
    }
    plan.didMakeFolder = {
      plan.didMakeFolder = nil
      // Another thread makes an object there and commits, before this one goes on.
      #expect(throws: Never.self) {
        _ = try store.create(two)
        try store.syncFolders()
      }
      #expect(plan.synced.contains("objects"))
    }
    _ = try store.create(one)
  }

  /// - Parameter isFavoured: then memory keeps eight times as many.
  @Test(arguments: [(false, 1500), (true, 5000)])
  func `files of more map pages than memory keeps are written and read`(isFavoured: Bool, pageCount: UInt64) throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    vault.favourRandomAccess(isFavoured)
    let limits = vault.files.mapLimits
    var loaded: Int { vault.files.loadedPages.load(ordering: .relaxed) }
    let pageBytes: UInt64 = 64 * 4096
    func content(_ page: UInt64, _ round: UInt8) -> UInt8 { round &+ UInt8(page % 100) }
    let paths = try ["one", "two"].map { try VaultPath($0) }
    for round in 1...2 as ClosedRange<UInt8> {
      let files = try paths.map { try vault.createFile(at: $0, blockSizeExponent: 12) }
      for page in 0..<pageCount {
        for file in files {
          try file.write([UInt8](repeating: content(page, round), count: 4096), at: page * pageBytes)
        }
        #expect(loaded <= limits.most + 2)
      }
      for page in 0..<pageCount where page.isMultiple(of: 7) {
        for file in files { #expect(try file.read(4096, at: page * pageBytes).first == content(page, round)) }
      }
      for file in files { try file.sync() }
      for page in 0..<pageCount {
        for file in files { #expect(try file.read(1, at: page * pageBytes).first == content(page, round)) }
      }
      // Nothing is dirty any more, and a look at them comes only now and then.
      #expect(loaded <= limits.kept + limits.betweenLooks)
      vault.favourRandomAccess(false)
      #expect(loaded <= MapLimits.small.kept)
      // One that is written then is not joined for the sake of what another has in memory.
      let joins = vault.files.committedGeneration
      for page in 0..<100 as Range<UInt64> {
        try files[0].write([UInt8](repeating: content(page, round), count: 4096), at: page * pageBytes)
      }
      #expect(vault.files.committedGeneration == joins)
      vault.favourRandomAccess(isFavoured)
      for file in files { try file.close() }
    }
    #expect(loaded == 0)
  }
}
