/// A piece of a page. Every text and every attribute's value is escaped when it is written, and there is no way to put
/// markup in as text: whatever somebody called themselves stays a name.
enum HTML: Sendable {
  case text(String)
  case element(Tag, [Attribute], [HTML])
  case group([HTML])

  static let nothing = HTML.group([])

  /// The page that has this in it.
  var document: String {
    var text = "<!doctype html>\n"
    write(to: &text)
    return text
  }

  private func write(to text: inout String) {
    switch self {
    case .text(let content): Self.escape(content, to: &text)
    case .group(let parts): for part in parts { part.write(to: &text) }
    case .element(let tag, let attributes, let content):
      text += "<\(tag.name)"
      for attribute in attributes {
        text += " \(attribute.name)"
        guard let value = attribute.value else { continue }
        text += "=\""
        Self.escape(value, to: &text)
        text += "\""
      }
      text += ">"
      if tag.isVoid { return }
      for part in content { part.write(to: &text) }
      text += "</\(tag.name)>"
    }
  }

  /// Good for text and for values between quotation marks (WHATWG HTML, section 13.3).
  private static func escape(_ content: String, to text: inout String) {
    for scalar in content.unicodeScalars {
      switch scalar {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      case "\"": text += "&quot;"
      case "'": text += "&#39;"
      default: text.unicodeScalars.append(scalar)
      }
    }
  }
}

/// Lets pages be written as they are nested. A text is a text.
@resultBuilder enum HTMLBuilder {
  static func buildExpression(_ text: String) -> HTML { .text(text) }
  static func buildExpression(_ html: HTML) -> HTML { html }
  static func buildExpression(_ html: [HTML]) -> HTML { .group(html) }
  static func buildExpression(_ html: HTML?) -> HTML { html ?? .nothing }
  static func buildBlock(_ parts: HTML...) -> HTML { .group(parts) }
  static func buildOptional(_ part: HTML?) -> HTML { part ?? .nothing }
  static func buildEither(first part: HTML) -> HTML { part }
  static func buildEither(second part: HTML) -> HTML { part }
  static func buildArray(_ parts: [HTML]) -> HTML { .group(parts) }
}
