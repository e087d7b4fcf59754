import Foundation
import Testing

/// A table in a document that a test's run gives. It must be what stands there; with COFFER_UPDATE_TABLES=1 in the
/// environment it is written anew.
struct GeneratedTable {
  let name: String
  /// Below the package's folder.
  let document: String

  func require(_ lines: [String]) throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let url = root.appending(path: document)
    var text = try String(contentsOf: url, encoding: .utf8)
    let begin = try #require(text.range(of: "<!-- \(name): begin -->\n"), "\(document) has no place for \(name)")
    let end = try #require(text.range(of: "<!-- \(name): end -->"))
    let found = String(text[begin.upperBound..<end.lowerBound])
    let expected = lines.joined(separator: "\n") + "\n"
    if ProcessInfo.processInfo.environment["COFFER_UPDATE_TABLES"] == "1" {
      text.replaceSubrange(begin.upperBound..<end.lowerBound, with: expected)
      try text.write(to: url, atomically: true, encoding: .utf8)
    } else {
      #expect(found == expected, "\(document) says otherwise; run with COFFER_UPDATE_TABLES=1 to write it anew")
    }
  }
}
