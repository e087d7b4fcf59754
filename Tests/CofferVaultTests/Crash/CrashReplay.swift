import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation

@testable import CofferVault

/// Cuts a recorded run at every place, lets a crash take what it may take, and looks at what is left.
struct CrashReplay {
  let run: RecordedRun
  /// The run's, or one in which a rule is broken.
  let log: StorageLog

  init(_ run: RecordedRun, log: StorageLog? = nil) {
    self.run = run
    self.log = log ?? run.log
  }

  struct Outcome: Sendable {
    var cutCount = 0
    /// Of those, cuts between the beginning of a commit and its end.
    var cutsInCommits = 0
    /// Crashes after which a part of a write to the index's log was there.
    var tornLogs = 0
    /// The same of its journal.
    var tornJournals = 0
    /// Crashes that took something.
    var withLosses = 0
    /// Crashes within a creation: no vault, or an empty one.
    var inCreation = 0
    /// Crashes under each circumstance.
    var circumstances: [Circumstance: Int] = [:]
    var states: Set<Int> = []
    /// The first ones, and the number of all.
    var damages: [String] = []
    var damageCount = 0

    mutating func add(_ other: Outcome) {
      cutCount += other.cutCount
      cutsInCommits += other.cutsInCommits
      tornLogs += other.tornLogs
      tornJournals += other.tornJournals
      withLosses += other.withLosses
      inCreation += other.inCreation
      circumstances.merge(other.circumstances, uniquingKeysWith: +)
      states.formUnion(other.states)
      damages += other.damages
      damageCount += other.damageCount
    }
  }

  /// - Parameters:
  ///   - reorderings: how many crashes at each place lose part of what was not synced.
  ///   - onceIn: at one of so many places, drawn from the seed, the run is cut.
  ///   - changingOnceIn: after every so manieth crash the vault is worked with and opened again.
  ///   - includingCreation: whether the making of the vault is cut as well.
  ///   - stopAt: damages after which to stop.
  func cut(
    reorderings: Int, onceIn: Int = 1, changingOnceIn: Int = 8, includingCreation: Bool = false, stopAt: Int = 20
  ) throws -> Outcome {
    var generator = SeededGenerator(seed: run.seed &+ 1)
    var outcome = Outcome()
    var disk = CrashDisk()
    var moment = Moment(log)
    let folder = try MemoryFolder()
    for (position, step) in log.steps.enumerated() {
      disk.apply(step)
      moment.pass(step)
      guard moment.isMade || includingCreation, generator.once(in: onceIn) else { continue }
      let circumstances = moment.circumstances(disk)
      for fate in fates(after: step, disk, reorderings: reorderings, generator: &generator) {
        let image = CrashImage(of: disk, fate: fate, generator: &generator)
        try image.write(to: folder("disk"))
        outcome.cutCount += 1
        if moment.allowed.count > 1 || !moment.isMade { outcome.cutsInCommits += 1 }
        if image.lostCount > 0 { outcome.withLosses += 1 }
        if image.torn.contains(where: { log.isIndexLog($0) }) { outcome.tornLogs += 1 }
        if image.torn.contains(where: { log.isJournal($0) }) { outcome.tornJournals += 1 }
        for circumstance in circumstances { outcome.circumstances[circumstance, default: 0] += 1 }
        do {
          try check(CrashCheck(opener: run.opener, folder: folder("disk")), moment, changingOnceIn, &outcome)
        } catch {
          outcome.damageCount += 1
          outcome.damages.append(
            "seed \(run.seed), cut behind step \(position) (\(log.text(step))), \(fate), states \(moment.allowed): "
              + "\(error)")
          if outcome.damageCount >= stopAt { return outcome }
        }
      }
    }
    return outcome
  }

  private func check(
    _ check: CrashCheck, _ moment: Moment, _ changingOnceIn: Int, _ outcome: inout Outcome
  ) throws {
    if !moment.isMade { return try self.check(creation: check, &outcome) }
    let isChanged = outcome.cutCount.isMultiple(of: changingOnceIn)
    outcome.states.insert(try check.state(run.states, allowed: moment.allowed, changing: isChanged))
    if let backup = moment.backup {
      try check.checkBackup(
        RecordedRun.backup + String(backup.state), run.states[backup.state], isFinished: backup.isFinished,
        verifying: isChanged)
    }
  }

  /// What the crash at one place may do: the clean cut, the last call torn, and seeded losses.
  private func fates(
    after step: StorageStep, _ disk: CrashDisk, reorderings: Int, generator: inout SeededGenerator
  ) -> [CrashImage.Fate] {
    var fates: [CrashImage.Fate] = []
    switch step {
    case .write(let node, let offset, let bytes):
      fates.append(.everything)
      // A short write over a sector's border tears as a long one does.
      let change = CrashDisk.Change.write(offset: offset, bytes: bytes)
      guard change.sectors(before: 0).count > 1 else { break }
      // Of the journal's few writes each is a commit, and is torn in several ways.
      fates += Array(repeating: .lastTorn(node), count: log.isJournal(node) ? 4 : 1)
    // A sync changes nothing where everything arrives, and a mark stands for no call.
    case .sync, .commitBegan: break
    case .circumstances, .backupBegan, .backupEnded: return []
    default: fates.append(.everything)
    }
    let unsynced = disk.unsynced
    if unsynced.isEmpty { return fates }
    for _ in 0..<reorderings {
      let node = unsynced.randomElement(using: &generator) ?? .root
      switch Int.random(in: 0..<8, using: &generator) {
      case 0: fates.append(.nothing)
      case 1, 2: fates.append(.allBut(node))
      case 3: fates.append(.only(node))
      default: fates.append(.some([0.1, 0.5, 0.9, 0.97].randomElement(using: &generator) ?? 0.5))
      }
    }
    return fates
  }

  /// A creation that was cut left no vault, or an empty one that opens.
  private func check(creation check: CrashCheck, _ outcome: inout Outcome) throws {
    do {
      _ = try check.state(run.states, allowed: [0], changing: outcome.cutCount.isMultiple(of: 8))
    } catch VaultError.noVault, VaultError.notAVault {}
    outcome.inCreation += 1
  }
}

extension StorageLog {
  func isIndexLog(_ node: NodeID) -> Bool { paths[node]?.hasSuffix("index.sqlite-wal") ?? false }

  func isJournal(_ node: NodeID) -> Bool { paths[node] == "vault/journal" }

  func text(_ step: StorageStep) -> String {
    func path(_ node: NodeID) -> String { paths[node] ?? "?" }
    return switch step {
    case .create(let node, _, _, _): "create \(path(node))"
    case .write(let node, let offset, let bytes): "write \(bytes.count) at \(offset) of \(path(node))"
    case .truncate(let node, let count): "truncate \(path(node)) to \(count)"
    case .punch(let node, let range): "punch \(range) of \(path(node))"
    case .sync(let node): "sync \(path(node))"
    case .rename(let node, _, _, let new, _): "rename \(path(node)) to \(String(decoding: new, as: UTF8.self))"
    case .unlink(let node, _, _): "unlink \(path(node))"
    case .commitBegan(let state): "commit \(state) begins"
    case .durable(let state): "state \(state) is durable"
    case .mayHold, .circumstances, .backupBegan, .backupFinished, .backupEnded: "\(step)"
    }
  }
}
