import Testing

@testable import CofferVault

/// Every stored part × every attack. The result is the table in Documentation/ThreatModel.md.
@Suite struct TamperMatrixTests {
  @Test func `every change of every stored part is found, or means nothing`() throws {
    let matrix = try TamperMatrix()
    var cells: [[TamperMatrix.Cell]] = []
    for part in StoredPart.allCases {
      var row: [TamperMatrix.Cell] = []
      for attack in Attack.allCases {
        do {
          row.append(try matrix.cell(part, attack))
        } catch {
          Issue.record("\(part.name), \(attack): \(error)")
          row.append(.impossible("failed"))
        }
      }
      cells.append(row)
    }
    try GeneratedTable(name: "tamper matrix", document: "Documentation/ThreatModel.md").require(Self.lines(cells))
  }

  /// As the table has it for rows whose buckets stand in pages.
  @Test func `rows whose buckets stand in the root are held to them as well`() throws {
    let matrix = try TamperMatrix(holdsBuckets: true)
    for kind in [RecordKind.entry, .inode, .map, .setting, .attribute, .mapDirectory] {
      for attack in Attack.allCases {
        let cell = try matrix.cell(.record(kind), attack)
        guard case .found(_, restIsRead: true) = cell else {
          Issue.record("\(StoredPart.record(kind).name), \(attack): \(cell)")
          continue
        }
      }
    }
  }

  private static func lines(_ cells: [[TamperMatrix.Cell]]) -> [String] {
    var errors: Set<String> = []
    var reasons: Set<String> = []
    for cell in cells.joined() {
      switch cell {
      case .found(let text, _): errors.insert(text)
      case .harmless(let text), .impossible(let text): reasons.insert(text)
      }
    }
    let (letters, numbers) = (errors.sorted(), reasons.sorted())
    func mark(_ cell: TamperMatrix.Cell) -> String {
      switch cell {
      case .found(let text, let restIsRead):
        letter(letters.firstIndex(of: text) ?? 0) + (restIsRead ? "+" : "")
      case .harmless(let text): "(\((numbers.firstIndex(of: text) ?? 0) + 1))"
      case .impossible(let text): "–\((numbers.firstIndex(of: text) ?? 0) + 1)"
      }
    }
    var lines = ["| | " + Attack.allCases.map(\.rawValue).joined(separator: " | ") + " |"]
    lines.append("|---" + String(repeating: "|---", count: Attack.allCases.count) + "|")
    for (part, row) in zip(StoredPart.allCases, cells) {
      lines.append("| \(part.name) | " + row.map(mark).joined(separator: " | ") + " |")
    }
    lines.append("")
    for (position, text) in letters.enumerated() { lines.append("- **\(letter(position))**: \(text)") }
    for (position, text) in numbers.enumerated() { lines.append("- **\(position + 1)**: \(text)") }
    return lines
  }

  private static func letter(_ position: Int) -> String { String(UnicodeScalar(UInt8(97 + position))) }
}
