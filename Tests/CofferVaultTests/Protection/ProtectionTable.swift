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

  /// As Markdown. Where all classes are alike in a state, they share a column.
  static var lines: [String] {
    var columns: [(name: String, state: State, protection: ProtectionClass)] = []
    for state in State.allCases {
      let areAlike = Operation.allCases.allSatisfy { operation in
        Set(ProtectionClass.allCases.map { allows(operation, $0, state) }).count == 1
      }
      if areAlike {
        columns.append(("\(state.rawValue), any class", state, .complete))
      } else {
        columns += ProtectionClass.allCases.map { ("\(state.rawValue), \($0.name)", state, $0) }
      }
    }
    var lines = [
      "| | " + columns.map(\.name).joined(separator: " | ") + " |",
      "|---|" + String(repeating: "---|", count: columns.count),
    ]
    for operation in Operation.allCases {
      let cells = columns.map { allows(operation, $0.protection, $0.state) ? "yes" : "no" }
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
