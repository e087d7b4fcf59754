internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Synchronization

/// Wiping a vault of many small files: how long from the call until nothing that is stored opens it, and until all of it
/// is gone.
enum WipeTime {
  static func measure(_ options: inout Options) throws {
    let count = try options.number("count", 100_000)
    let rounds = try options.number("rounds", 3)
    let place = try BenchVault(options)
    for round in 1...rounds {
      let vault = try place.create()
      try SmallFiles.fill(vault, count: count, perFolder: 1000)
      try vault.close()
      let start = ContinuousClock.now
      let keys = Mutex(Duration.zero)
      try place.wipe { keys.withLock { $0 = ContinuousClock.now - start } }
      let all = ContinuousClock.now - start
      for (subject, duration) in [("keys", keys.withLock { $0 }), ("everything", all)] {
        try Line(
          measurement: "wipe", subject: subject, round: round, parameters: ["count": count],
          seconds: Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18, calls: 1
        ).print()
      }
    }
  }
}
