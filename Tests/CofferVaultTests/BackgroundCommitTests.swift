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

/// Operations that go on while a commit is under way.
@Suite struct BackgroundCommitTests {
  /// Calls `body` once, in the first call of a kind after it was armed: on the thread that commits, so that whoever holds a
  /// lock there waits for itself.
  private final class Within: FaultPlan {
    private let body = Mutex<(call: SystemCall, body: @Sendable () throws(SystemError) -> Void)?>(nil)

    func arm(_ call: SystemCall, _ body: @escaping @Sendable () throws(SystemError) -> Void) {
      self.body.withLock { $0 = (call, body) }
    }

    var isArmed: Bool { body.withLock { $0 != nil } }

    func willCall(_ call: SystemCall) throws(SystemError) {
      let body = body.withLock { armed -> (@Sendable () throws(SystemError) -> Void)? in
        guard armed?.call == call else { return nil }
        defer { armed = nil }
        return armed?.body
      }
      try body?()
    }
  }

  /// A tree of folders and small files, as paths with content; folders have none.
  private typealias Model = [String: [UInt8]?]

  private static func tree(of vault: Vault) throws -> Model {
    var found: Model = [:]
    var folders: [String] = [""]
    while let folder = folders.popLast() {
      let path = folder.isEmpty ? VaultPath.root : try VaultPath(folder)
      for entry in try vault.list(path) {
        let name = folder + (folder.isEmpty ? "" : "/") + String(decoding: entry.name, as: UTF8.self)
        if entry.attributes.kind == .directory {
          found.updateValue(nil, forKey: name)
          folders.append(name)
        } else {
          found[name] = try vault.contents(of: VaultPath(name))
        }
      }
    }
    return found
  }

  /// Does something to the vault and the model, chosen by chance.
  private static func change(_ vault: Vault, _ model: inout Model, _ generator: inout SeededGenerator) throws {
    let files = model.filter { $0.value != nil }.keys.sorted()
    let folders = [""] + model.filter { $0.value == nil }.keys.sorted()
    let folder = folders.randomElement(using: &generator)!
    let name = (folder.isEmpty ? "" : folder + "/") + "n\(Int.random(in: 0..<12, using: &generator))"
    switch Int.random(in: 0..<10, using: &generator) {
    case 0 where model[name] == nil && folder.count < 20:
      try vault.makeDirectory(at: VaultPath(name))
      model.updateValue(nil, forKey: name)
    case 1...4 where model[name] == nil || model[name]! != nil:
      let bytes = generator.bytes(Int.random(in: 1...10_000, using: &generator))
      let file = try vault.createFile(at: VaultPath(name))
      try file.truncate(to: 0)
      try file.write(bytes, at: 0)
      try file.close()
      model[name] = bytes
    case 5, 6:
      guard let name = files.randomElement(using: &generator) else { return }
      try vault.remove(VaultPath(name))
      model.removeValue(forKey: name)
    case 7:
      guard let old = files.randomElement(using: &generator), model[name] == nil, let content = model[old] else {
        return
      }
      try vault.rename(VaultPath(old), to: VaultPath(name))
      model.removeValue(forKey: old)
      model[name] = content
    case 8:
      guard
        let old = folders.dropFirst().filter({ folder in !model.keys.contains { $0.hasPrefix(folder + "/") } })
          .randomElement(using: &generator)
      else { return }
      try vault.remove(VaultPath(old))
      model.removeValue(forKey: old)
    default:
      let path = folder.isEmpty ? VaultPath.root : try VaultPath(folder)
      _ = try vault.list(path)
    }
  }

  /// A vault with its model, changed by whoever asks.
  private final class Workload: Sendable {
    let vault: Vault
    private let state: Mutex<(model: Model, generator: SeededGenerator)>

    init(_ vault: Vault, seed: UInt64) {
      self.vault = vault
      state = Mutex((Model(), SeededGenerator(seed: seed)))
    }

    var model: Model { state.withLock { $0.model } }

    func change(times: Int) throws {
      try state.withLock { state in
        for _ in 0..<times { try BackgroundCommitTests.change(vault, &state.model, &state.generator) }
      }
    }

    /// Makes a file with an object, so that the next commit syncs a folder.
    func mark(_ name: String) throws {
      let content = [UInt8](repeating: 1, count: 5000)
      let file = try vault.createFile(at: VaultPath(name))
      try file.write(content, at: 0)
      try file.close()
      state.withLock { $0.model[name] = content }
    }
  }

  @Test func `a commit holds what there was when it began, whatever is done meanwhile`() throws {
    var failureCount = 0
    try Effort.rounds(5) { seed in
      let fixture = try VaultFixture()
      let plan = Within()
      let vault = try fixture.create(files: FileSystem(faults: plan))
      let workload = Workload(vault, seed: seed)
      for round in 0..<12 {
        try workload.change(times: 25)
        try workload.mark("marker\(round)")
        let before = workload.model
        let fails = round % 4 == 3
        plan.arm(.sync) { () throws(SystemError) in
          #expect(throws: Never.self) { try workload.change(times: 25) }
          if fails { throw SystemError(code: ENOSPC, call: "sync") }
        }
        // One that removes more than it makes is made again with the ballast's room.
        let hasFailed = (try? vault.commitNames()) == nil
        #expect(fails || !hasFailed)
        failureCount += hasFailed ? 1 : 0
        #expect(!plan.isArmed)
        #expect(try Self.tree(of: vault) == workload.model, "seed \(seed), round \(round)")
        if hasFailed { continue }
        try fixture.copyAsAfterCrash()
        let crashed = try fixture.openAfterCrash()
        #expect(try Self.tree(of: crashed) == before, "seed \(seed), round \(round)")
        try crashed.close()
        try FileManager.default.removeItem(atPath: fixture.folder("crashed"))
      }
      try vault.close()
      let again = try fixture.open()
      #expect(try Self.tree(of: again) == workload.model, "seed \(seed)")
      #expect(try again.verify(isDeep: true).isClean)
      try again.close()
    }
    #expect(failureCount > 0)
  }

  private final class Count: Sendable { let count = Atomic(0) }

  /// - Parameter hasThreads: the system has threads to give.
  @Test(arguments: [true, false])
  func `who reads and changes beside commits sees its own changes`(hasThreads: Bool) async throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let begun = Count()
    vault.commits.startThread = { body in
      begun.count.wrappingAdd(1, ordering: .relaxed)
      guard hasThreads else { throw SystemError(code: EAGAIN, call: "pthread_create") }
      try NewThread.start(body)
    }
    // Each in a folder of its own, with its own model.
    let done = Count()
    let threads = 3
    try await withThrowingTaskGroup(of: Void.self) { group in
      for thread in 0..<threads {
        group.addTask {
          defer { done.count.wrappingAdd(1, ordering: .relaxed) }
          var generator = SeededGenerator(seed: UInt64(thread))
          var model: [String: [UInt8]] = [:]
          try vault.makeDirectory(at: VaultPath("t\(thread)"))
          for round in 0..<Effort.scaled(800) {
            let name = "t\(thread)/\(Int.random(in: 0..<200, using: &generator))"
            if model[name] != nil, Bool.random(using: &generator) {
              try vault.remove(VaultPath(name))
              model[name] = nil
            } else {
              let bytes = generator.bytes(Int.random(in: 1..<6000, using: &generator))
              let file = try vault.createFile(at: VaultPath(name))
              try file.truncate(to: 0)
              try file.write(bytes, at: 0)
              try file.close()
              model[name] = bytes
            }
            guard round % 10 == 0 else { continue }
            // So that it is read from SQLite, and waits for a commit that writes there.
            if round % 100 == 0 { try vault.index.forgetOpened() }
            let listed = try vault.list(VaultPath("t\(thread)")).map { String(decoding: $0.name, as: UTF8.self) }
            #expect(Set(listed) == Set(model.keys.map { String($0.dropFirst(3)) }), "thread \(thread), round \(round)")
            for (name, bytes) in model.prefix(3) { #expect(try vault.contents(of: VaultPath(name)) == bytes) }
          }
          for (name, bytes) in model { #expect(try vault.contents(of: VaultPath(name)) == bytes) }
        }
      }
      group.addTask {
        while done.count.load(ordering: .relaxed) < threads { try vault.commitNames() }
      }
      try await group.waitForAll()
    }
    #expect(try vault.verify(isDeep: true).isClean)
    try vault.close()
  }

  @Test func `many changes are committed in the background, and a failure there is told`() throws {
    let fixture = try VaultFixture()
    let log = CallLog()
    let vault = try fixture.create(files: FileSystem(faults: log))
    let first = vault.index.read { $0.committed.generation }
    for number in 0..<5000 { try vault.makeDirectory(at: VaultPath("\(number)")) }
    // Without anybody who asked for it.
    vault.index.read { $0.underWay }?.wait()
    #expect(vault.index.read { $0.committed.generation } > first)
    // Files with objects, whose folders cannot be synced from here on.
    var made = 0
    var failure: (any Error)?
    while failure == nil, made < 2000 {
      do {
        let file = try vault.createFile(at: VaultPath("file\(made)"))
        try file.write([UInt8](repeating: 1, count: 5000), at: 0)
        if made == 100 { log.fail(.sync, times: .max) }
        try file.close()
        made += 1
      } catch { failure = error }
    }
    #expect(failure != nil)
    log.fail(.sync, times: 0)
    #expect(throws: Never.self) { try vault.commitNames() }
    #expect(try vault.list(.root).count >= 5000 + 100)
    try? vault.close()
    let again = try fixture.open()
    #expect(try again.verify(isDeep: true).isClean)
    try again.close()
  }

  /// Has no room as long as the vault keeps some for itself.
  private final class FullDisk: FaultPlan {
    private let ballast: String
    private let state = Mutex((isFull: false, failureCount: 0))
    var failureCount: Int { state.withLock { $0.failureCount } }
    func fill() { state.withLock { $0.isFull = true } }

    init(_ fixture: VaultFixture) { ballast = fixture.vaultPath + "/ballast" }

    func willCall(_ call: SystemCall) throws(SystemError) {
      let fails = state.withLock { state in
        guard call == .sync, state.isFull, FileManager.default.fileExists(atPath: ballast) else { return false }
        state.failureCount += 1
        return true
      }
      if fails { throw SystemError(code: ENOSPC, call: "sync") }
    }
  }

  @Test func `what is removed on a full disk is committed in the background with the room that was kept for it`()
    async throws
  {
    let fixture = try VaultFixture()
    let disk = FullDisk(fixture)
    let vault = try fixture.create(files: FileSystem(faults: disk))
    let threads = 3
    for thread in 0..<threads {
      try vault.makeDirectory(at: VaultPath("\(thread)"))
      for number in 0..<3000 { try vault.makeDirectory(at: VaultPath("\(thread)/\(number)")) }
      for number in 0..<40 {
        let file = try vault.createFile(at: VaultPath("\(thread)/file\(number)"))
        try file.write([UInt8](repeating: 1, count: 5000), at: 0)
        try file.close()
      }
    }
    try vault.commit()
    disk.fill()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for thread in 0..<threads {
        group.addTask {
          for number in 0..<3000 {
            try vault.remove(VaultPath("\(thread)/\(number)"))
            if number % 75 == 0 { try vault.remove(VaultPath("\(thread)/file\(number / 75)")) }
            if number % 500 == 0 { try vault.commitNames() }
          }
        }
      }
      try await group.waitForAll()
    }
    try vault.close()
    #expect(disk.failureCount > 1)
    let again = try fixture.open()
    for thread in 0..<threads { #expect(try again.list(VaultPath("\(thread)")).isEmpty) }
    #expect(try again.verify(isDeep: true).isClean)
    try again.close()
  }
}
