/// The text of `--help` in lines: prose is as wide as the terminal, while examples and tables stay as they were written,
/// so that an example can be copied in one piece.
public enum HelpText {
  /// What every help begins with, and what follows the prose.
  private static let overview = "OVERVIEW: "
  private static let usage = "USAGE: "
  /// Where the description of an option or a command begins.
  private static let descriptionColumn = 26
  /// Narrower, nothing could be read.
  private static let fewestColumns = 40

  public static func isHelp(_ text: String) -> Bool { text.hasPrefix(overview) }

  /// Breaks a help that has no line breaks but those which were written.
  ///
  /// In the prose an indented line is an example or a row of a table, and lines that are not are one paragraph up to the
  /// next one or an empty line.
  public static func wrapped(_ text: String, columns: Int) -> String {
    let columns = max(columns, fewestColumns)
    var result: [Substring] = []
    var paragraph: [Substring] = []
    func endParagraph() {
      result += lines(of: paragraph.joined(separator: " "), columns: columns)
      paragraph = []
    }
    let all = text.split(separator: "\n", omittingEmptySubsequences: false)
    let proseEnd = all.firstIndex { $0.hasPrefix(usage) } ?? all.endIndex
    for line in all[..<proseEnd] {
      if line.isEmpty || line.first == " " {
        endParagraph()
        result.append(line)
      } else {
        paragraph.append(line)
      }
    }
    endParagraph()
    // The synopsis, and what describes options and commands.
    let synopsisEnd = all[proseEnd...].firstIndex(of: "") ?? all.endIndex
    result += all[proseEnd..<synopsisEnd]
    for line in all[synopsisEnd...] {
      guard line.count > columns, line.first == " " else {
        result.append(line)
        continue
      }
      let indent = String(repeating: " ", count: descriptionColumn)
      let description = lines(of: String(line.dropFirst(descriptionColumn)), columns: columns - descriptionColumn)
      for (number, part) in description.enumerated() {
        result.append((number == 0 ? line.prefix(descriptionColumn) : Substring(indent)) + part)
      }
    }
    return result.joined(separator: "\n")
  }

  private static func lines(of text: String, columns: Int) -> [Substring] {
    var lines: [String] = []
    for word in text.split(separator: " ") {
      if let last = lines.last, last.count + 1 + word.count <= columns {
        lines[lines.count - 1] += " " + word
      } else {
        lines.append(String(word))
      }
    }
    return lines.map { Substring($0) }
  }
}
