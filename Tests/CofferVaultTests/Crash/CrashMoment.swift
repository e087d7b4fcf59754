import CofferVaultTestSupport

extension CrashReplay {
  /// Where in a run a crash comes: what may be found after it, and under what circumstances it comes.
  struct Moment {
    /// Numbers of the states of which one must be found.
    private(set) var allowed: [Int] = []
    /// The vault's creation was reported as finished.
    private(set) var isMade = false
    private(set) var backup: (state: Int, isFinished: Bool)?
    private var marked: Set<Circumstance> = []
    private let index: NodeID?

    init(_ log: StorageLog) { index = log.paths.first { $0.value == "vault/index.sqlite" }?.key }

    mutating func pass(_ step: StorageStep) {
      switch step {
      case .commitBegan(let state): allowed.append(state)
      case .mayHold(let states): allowed = states
      case .durable(let state):
        allowed = [state]
        isMade = true
      case .circumstances(let circumstances): marked = circumstances
      // Its commit is the first thing that a backup does, and is done before there is something to open.
      case .backupBegan: backup = allowed.last.map { ($0, false) }
      case .backupFinished: backup?.isFinished = true
      case .backupEnded: backup = nil
      default: break
      }
    }

    func circumstances(_ disk: CrashDisk) -> Set<Circumstance> {
      var result = marked
      // An index that is made, or closed, takes its log along too.
      if isMade, !marked.contains(.closing), let index, disk.files[index]?.pending.isEmpty == false {
        result.insert(.checkpoint)
      }
      return result
    }
  }
}
