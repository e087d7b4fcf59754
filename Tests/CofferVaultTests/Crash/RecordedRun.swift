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

  /// - Parameter commitCount: commits at least.
  init(seed: UInt64, commitCount: Int, sizes: VaultWorkload.Sizes = .small) throws {
    self.seed = seed
    let folder = try MemoryFolder()
    try FileSystem().makeDirectory(folder("disk"))
    let recorder = try StorageRecorder(recording: folder("disk"), except: [VaultFormat.ballast])
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
    try vault.close()

    var states = [ExpectedVault()]
    var workload = VaultWorkload(seed: seed, sizes: sizes)
    var run = try WorkloadRun(scratch: folder("scratch")) { try opener.open(folder("disk"), files: files) }
    func commit(_ state: Int, _ body: () throws -> Void) rethrows {
      states.append(workload.expected)
      recorder.mark(.commitBegan(state: state))
      try body()
      recorder.mark(.durable(state: state))
    }
    while states.count < commitCount {
      let step = workload.next()
      switch step {
      case .change: try run.perform(step)
      case .commit(let state), .reopen(let state): try commit(state) { try run.perform(step) }
      }
    }
    try commit(states.count) { try run.close() }
    self.states = states
    log = recorder.log
  }
}

/// Opens what a crash left of a vault and its key store, without deriving the passcode anew.
struct CrashedVault: Sendable {
  let key: SecretKey
  let time = SteppingTime()

  /// - Parameter folder: holds `vault` and `keys`.
  func open(_ folder: String, files: FileSystem = FileSystem()) throws -> Vault {
    try Vault.open(
      at: folder + "/vault", keyStore: FileKeyStore(path: folder + "/keys", files: files), files: files,
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
