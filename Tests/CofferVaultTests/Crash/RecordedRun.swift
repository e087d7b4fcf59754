import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization

@testable import CofferVault

/// A seeded workload on a new vault, with every storage operation of it.
struct RecordedRun {
  let seed: UInt64
  let log: StorageLog
  /// What the vault held at each of its commits; the first is the new vault.
  let states: [ExpectedVault]
  let opener: CrashedVault

  /// - Parameter commitCount: how often the workload makes something durable.
  init(seed: UInt64, commitCount: Int, sizes: VaultWorkload.Sizes = .small) throws {
    self.seed = seed
    let folder = try MemoryFolder()
    try FileSystem().makeDirectory(folder("disk"))
    // Every other run copies the index's log into the index after few commits, not only when the vault is closed.
    let recorder = try StorageRecorder(
      recording: folder("disk"), except: [VaultFormat.ballast],
      checkpointingAfter: seed.isMultiple(of: 2) ? Self.checkpointPages : nil)
    let files = FileSystem(faults: recorder)
    let derivation = try TestVault.derivation()
    let opener = CrashedVault(key: try derivation.key(for: TestVault.passcode))
    self.opener = opener
    recorder.mark(.commitBegan(state: 0))
    let vault = try Vault.create(
      at: folder("disk/vault"), keyStore: FileKeyStore(path: folder("disk/keys"), files: files),
      passcode: TestVault.passcode, derivation: derivation, files: files, time: opener.time,
      options: TestVault.options)
    recorder.mark(.durable(state: 0))
    recorder.mark(.circumstances([.closing]))
    try vault.close()
    recorder.mark(.circumstances([]))

    var states = [ExpectedVault()]
    var workload = VaultWorkload(seed: seed, sizes: sizes)
    var run = try WorkloadRun(
      scratch: folder("scratch"), backup: folder("disk/" + Self.backup), files: files
    ) {
      let vault = try opener.open(folder("disk"), files: files)
      // In three of four runs small commits gather beside the index as soon as they may.
      if !seed.isMultiple(of: 4) { vault.index.tables.changeRules { $0.commitsBeforeJournal = 1 } }
      return vault
    }
    var backup: Int?
    for _ in 0..<commitCount {
      let (step, state) = try run.performChanges(of: &workload) { recorder.mark(.circumstances($0)) }
      states += workload.states
      recorder.mark(.commitBegan(state: state))
      try run.perform(step, observer: Self.observer(of: step, recorder))
      recorder.mark(.durable(state: state))
      // One commit beside it is enough.
      if let done = backup {
        recorder.mark(.backupEnded)
        try run.removeBackup(done)
        backup = nil
      }
      if case .backup = step {
        recorder.mark(.backupFinished)
        backup = state
      }
    }
    states.append(workload.expected)
    recorder.mark(.circumstances([.closing]))
    recorder.mark(.commitBegan(state: states.count - 1))
    try run.close()
    recorder.mark(.durable(state: states.count - 1))
    self.states = states
    log = recorder.log
  }

  private static let checkpointPages: CInt = 5

  /// The folders of backups, beside the vault's, begin with this; behind it is the number of the state.
  static let backup = "backup"

  private static func observer(of step: VaultWorkload.Step, _ recorder: StorageRecorder) -> WorkloadRun.Observer {
    var observer = WorkloadRun.Observer()
    observer.backupBegan = { recorder.mark(.backupBegan) }
    guard case .race(let race) = step else { return observer }
    let before = race.state(0, 1) - 1
    recorder.mark(.mayHold(states: [before]))
    let progress = Mutex((began: [0, 0], durable: [0, 0]))
    @Sendable func tell(_ change: (inout (began: [Int], durable: [Int])) -> Void) {
      // Told under the lock, so that what is told last is the newest.
      progress.withLock { progress in
        change(&progress)
        let isFirst = progress.durable == [0, 0]
        let grid = race.states(began: progress.began, durable: progress.durable).filter { $0 > before }
        recorder.mark(.mayHold(states: (isFirst ? [before] : []) + grid))
        let bothWrite = (0..<2).allSatisfy { progress.began[$0] > 0 && progress.durable[$0] < WriterRace.rounds }
        recorder.mark(.circumstances(bothWrite ? [.twoWriters] : []))
      }
    }
    observer.raceBegan = { writer, round in tell { $0.began[writer] = round } }
    observer.raceIsDurable = { writer, round in tell { $0.durable[writer] = round } }
    return observer
  }
}

/// Opens what a crash left of a vault and its key store, without deriving the passcode anew.
struct CrashedVault: Sendable {
  let key: SecretKey
  let time = SteppingTime()

  /// - Parameter folder: holds the vault `name`, and `keys`.
  func open(_ folder: String, _ name: String = "vault", files: FileSystem = FileSystem()) throws -> Vault {
    try Vault.open(
      at: folder + "/" + name, keyStore: FileKeyStore(path: folder + "/keys", files: files), files: files,
      time: time, options: TestVault.options
    ) { _ in key }
  }
}

/// A tenth of a second passes between any two looks at it, so that what happens at a bounded rate happens now and then.
final class SteppingTime: TimeSource {
  private let tenths = Atomic<Int64>(17_000_000_000)

  func now() -> Timestamp {
    let (seconds, rest) = tenths.wrappingAdd(1, ordering: .relaxed).newValue.quotientAndRemainder(dividingBy: 10)
    return Timestamp(seconds: seconds, nanoseconds: UInt32(rest) * 100_000_000)
  }
}

/// A folder in memory where the system has one, because syncing thousands of crashed vaults would take hours.
final class MemoryFolder: Sendable {
  let path: String

  init() throws {
    let shared = "/dev/shm"
    let isThere = try FileSystem().status(of: shared)?.kind == .directory
    let base = isThere ? shared : URL(filePath: NSTemporaryDirectory()).resolvingSymlinksInPath().path
    path = base + "/coffer-test-" + UUID().uuidString
    try FileSystem().makeDirectory(path)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func callAsFunction(_ name: String) -> String { path + "/" + name }
}
