import Foundation

/// A form of a page as a browser sends it when nobody changes anything.
struct ConsoleForm {
  let action: String
  private(set) var fields: [(String, String)] = []

  /// The form of `page` that sends to `action`; nil when there is none. Reads only what the console writes.
  init?(_ page: String, action: String) {
    guard let start = page.range(of: "<form method=\"post\" action=\"\(action)\""),
      let end = page.range(of: "</form>", range: start.upperBound..<page.endIndex)
    else { return nil }
    self.action = action
    var (select, rest) = ("", page[start.upperBound..<end.lowerBound])
    while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
      let tag = rest[rest.index(after: open)..<close]
      rest = rest[rest.index(after: close)...]
      let (name, value) = (Self.attribute("name", tag), Self.attribute("value", tag))
      switch tag.prefix(while: { $0 != " " }) {
      case "input":
        let isChoice = ["checkbox", "radio"].contains(Self.attribute("type", tag) ?? "")
        if let name, !isChoice || tag.contains(" checked") { fields.append((name, value ?? "on")) }
      case "select": select = name ?? ""
      case "option":
        // The first one, until another is selected.
        if !fields.contains(where: { $0.0 == select }) { fields.append((select, value ?? "")) }
        if tag.contains(" selected") { set(select, value ?? "") }
      default: break
      }
    }
  }

  private static func attribute(_ name: String, _ tag: Substring) -> String? {
    guard let start = tag.range(of: " \(name)=\""), let end = tag[start.upperBound...].firstIndex(of: "\"") else {
      return nil
    }
    return String(tag[start.upperBound..<end])
      .replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&quot;", with: "\"")
      .replacing("&#39;", with: "'").replacing("&amp;", with: "&")
  }

  /// What a field holds after somebody typed or chose something in it.
  mutating func set(_ name: String, _ values: String...) {
    fields.removeAll { $0.0 == name }
    fields += values.map { (name, $0) }
  }

  /// Without the session's token, which whoever posts adds.
  var sent: [(String, String)] { fields.filter { $0.0 != "csrf" } }
}
