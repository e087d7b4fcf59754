internal import CCoffer
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Signals that are noted and do nothing else until ``end()``; then they do again what they did before. For one use at a
/// time in a process. One that is ignored stays so.
struct NotedSignals {
  private static let last = Atomic<Int32>(0)
  private let before: [(number: Int32, action: sigaction)]

  init(_ numbers: [Int32]) {
    Self.last.store(0, ordering: .relaxed)
    before = numbers.compactMap { number in
      if coffer_ignores(number) != 0 { return nil }
      // Nothing is restarted: whoever waits in a call hears of the signal at once.
      var action = sigaction()
      var former = sigaction()
      let handler: @convention(c) (Int32) -> Void = { NotedSignals.last.store($0, ordering: .relaxed) }
      #if canImport(Glibc)
        action.__sigaction_handler.sa_handler = handler
      #else
        action.__sigaction_u.__sa_handler = handler
      #endif
      return sigaction(number, &action, &former) == 0 ? (number, former) : nil
    }
  }

  /// The one that came last; nil where none did.
  var noted: Int32? {
    let number = Self.last.load(ordering: .relaxed)
    return number == 0 ? nil : number
  }

  func end() {
    for (number, action) in before {
      var action = action
      sigaction(number, &action, nil)
    }
  }
}
