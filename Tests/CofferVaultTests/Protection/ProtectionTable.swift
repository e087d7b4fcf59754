import CofferFiles
import CofferVault

/// What a protection class allows in which state: the expected table, from which the tests are generated and the one in
/// the documentation is written.
enum ProtectionTable {
  enum State: String, CaseIterable {
    case beforeFirstUnlock = "before first unlock"
    case unlocked
    case locked
  }

  enum Operation: String, CaseIterable {
    case create
    case open
    /// Through a handle that was opened while the vault was unlocked; so are the next two.
    case read = "read an open file"
    case write = "write an open file"
    case close
    case list
    case rename
    case remove
  }

  static func allows(_ operation: Operation, _ protection: ProtectionClass, _ state: State) -> Bool {
    switch state {
    // Names and records are under the metadata key, which the first unlock brings.
    case .beforeFirstUnlock: return false
    case .unlocked: return true
    case .locked: break
    }
    switch (protection, operation) {
    case (_, .close), (_, .list), (_, .rename), (_, .remove): return true
    case (.complete, _): return false
    case (.completeUnlessOpen, .open): return false
    case (.completeUnlessOpen, _), (.untilFirstUnlock, _), (.none, _): return true
    }
  }

  /// As Markdown.
  static var lines: [String] {
    let columns = State.allCases.flatMap { state in ProtectionClass.allCases.map { (state, $0) } }
    var lines = [
      "| | " + columns.map { "\($0.1.name), \($0.0.rawValue)" }.joined(separator: " | ") + " |",
      "|---|" + String(repeating: "---|", count: columns.count),
    ]
    for operation in Operation.allCases {
      let cells = columns.map { allows(operation, $0.1, $0.0) ? "yes" : "no" }
      lines.append("| \(operation.rawValue) | " + cells.joined(separator: " | ") + " |")
    }
    return lines
  }
}

extension ProtectionClass {
  var name: String {
    switch self {
    case .complete: "complete"
    case .completeUnlessOpen: "complete-unless-open"
    case .untilFirstUnlock: "until-first-unlock"
    case .none: "none"
    }
  }
}
