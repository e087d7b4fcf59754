internal import CofferFiles
public import CofferSystem
public import CofferVault
internal import Foundation
internal import Synchronization

/// Does what a workload draws.
public struct WorkloadRun {
  /// What is told while a step is done, from any thread.
  public struct Observer: Sendable {
    /// A writer of a race begins with a round, counted from 1.
    public var raceBegan: @Sendable (_ writer: Int, _ round: Int) -> Void = { _, _ in }
    /// It was told that the round is durable.
    public var raceIsDurable: @Sendable (_ writer: Int, _ round: Int) -> Void = { _, _ in }
    /// The place of a backup is empty, and the backup begins.
    public var backupBegan: @Sendable () -> Void = {}

    public init() {}
  }

  public private(set) var vault: Vault
  private var held = HeldFiles()
  private let open: () throws -> Vault
  private let scratch: String
  private let backup: String
  private let files: FileSystem

  /// - Parameters:
  ///   - scratch: a file that may be overwritten.
  ///   - backup: where copies of the vault may be; each has the number of its state behind this.
  ///   - files: removes them.
  public init(
    scratch: String, backup: String, files: FileSystem = FileSystem(), open: @escaping () throws -> Vault
  ) throws {
    self.open = open
    self.scratch = scratch
    self.backup = backup
    self.files = files
    vault = try open()
  }

  /// Makes the changes up to the next step that makes something durable; returns that, undone, with its state.
  public mutating func performChanges(
    of workload: inout VaultWorkload, willTake: (Set<Circumstance>) -> Void = { _ in }
  ) throws -> (step: VaultWorkload.Step, state: Int) {
    while true {
      let step = workload.next()
      willTake(workload.circumstances)
      if let state = step.state { return (step, state) }
      try perform(step)
    }
  }

  public mutating func perform(_ step: VaultWorkload.Step, observer: Observer = Observer()) throws {
    switch step {
    case .change(let change): try change.apply(to: vault, holding: &held, scratch: scratch)
    case .commit: try vault.commit()
    case .reopen:
      // What is held outlives the vault.
      try vault.close()
      held = HeldFiles()
      vault = try open()
    case .sync(let handle, _): try held.handles[handle].sync()
    case .backup(let state):
      try removeBackup(state)
      observer.backupBegan()
      try vault.backup(to: backup + String(state))
    case .race(let race): try run(race, observer)
    }
  }

  /// Removes a backup where it is there.
  public func removeBackup(_ state: Int) throws {
    guard try files.status(of: backup + String(state)) != nil, let slash = backup.lastIndex(of: "/") else { return }
    let folder = try files.open(String(backup[..<slash]), .directory)
    try files.removeTree(backup[backup.index(after: slash)...] + String(state), in: folder)
  }

  private func run(_ race: WriterRace, _ observer: Observer) throws {
    let handles = try race.paths.map { try vault.open(VaultPath($0), .writing) }
    let failure = Mutex<(any Error)?>(nil)
    let ready = DispatchSemaphore(value: 0)
    let go = DispatchSemaphore(value: 0)
    let done = DispatchSemaphore(value: 0)
    for (writer, handle) in handles.enumerated() {
      Thread.detachNewThread {
        // Both have begun before either writes.
        observer.raceBegan(writer, 1)
        ready.signal()
        go.wait()
        do {
          for round in 1...WriterRace.rounds {
            let (offset, bytes) = race.writes[writer][round - 1]
            if round > 1 { observer.raceBegan(writer, round) }
            try handle.write(bytes, at: UInt64(offset))
            try handle.sync()
            observer.raceIsDurable(writer, round)
          }
        } catch {
          failure.withLock { $0 = error }
        }
        done.signal()
      }
    }
    for _ in handles { ready.wait() }
    for _ in handles { go.signal() }
    for _ in handles { done.wait() }
    if let error = failure.withLock({ $0 }) { throw error }
    for handle in handles { try handle.close() }
  }

  /// Ends without a commit of what was not committed.
  public mutating func close() throws {
    try vault.close()
    held = HeldFiles()
  }
}
