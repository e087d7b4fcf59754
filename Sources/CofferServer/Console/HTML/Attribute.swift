/// An attribute that pages use. There is none that holds a script or a style, and those that hold an address take
/// nothing but a ``Link``.
struct Attribute: Sendable {
  let name: String
  /// Nil: the attribute is there.
  let value: String?

  private init(_ name: String, _ value: String?) {
    self.name = name
    self.value = value
  }

  static func id(_ value: String) -> Attribute { Attribute("id", value) }
  static func `class`(_ value: String) -> Attribute { Attribute("class", value) }
  static func lang(_ value: String) -> Attribute { Attribute("lang", value) }
  static func charset(_ value: String) -> Attribute { Attribute("charset", value) }
  static func name(_ value: String) -> Attribute { Attribute("name", value) }
  static func content(_ value: String) -> Attribute { Attribute("content", value) }
  static func rel(_ value: String) -> Attribute { Attribute("rel", value) }
  static func href(_ value: Link) -> Attribute { Attribute("href", value.text) }
  static func src(_ value: Link) -> Attribute { Attribute("src", value.text) }
  static func action(_ value: Link) -> Attribute { Attribute("action", value.text) }
  static let `defer` = Attribute("defer", nil)
  static let post = Attribute("method", "post")
  static let get = Attribute("method", "get")
  static let noValidate = Attribute("novalidate", nil)
  static func type(_ value: String) -> Attribute { Attribute("type", value) }
  static func value(_ value: String) -> Attribute { Attribute("value", value) }
  static func `for`(_ value: String) -> Attribute { Attribute("for", value) }
  static func autocomplete(_ value: String) -> Attribute { Attribute("autocomplete", value) }
  static func inputMode(_ value: String) -> Attribute { Attribute("inputmode", value) }
  static func maxLength(_ value: Int) -> Attribute { Attribute("maxlength", "\(value)") }
  static let noSpelling = Attribute("spellcheck", "false")
  static let required = Attribute("required", nil)
  static let readOnly = Attribute("readonly", nil)
  static let checked = Attribute("checked", nil)
  static let selected = Attribute("selected", nil)
  static let open = Attribute("open", nil)
  static func scope(_ value: String) -> Attribute { Attribute("scope", value) }
  static func start(_ value: Int) -> Attribute { Attribute("start", "\(value)") }
  static func tabIndex(_ value: Int) -> Attribute { Attribute("tabindex", "\(value)") }
  static func dateTime(_ value: String) -> Attribute { Attribute("datetime", value) }
  static func role(_ value: String) -> Attribute { Attribute("role", value) }
  static func aria(_ name: AriaName, _ value: String) -> Attribute { Attribute("aria-\(name.rawValue)", value) }
  static func data(_ name: DataName, _ value: String) -> Attribute { Attribute("data-\(name.rawValue)", value) }
  static func viewBox(_ value: String) -> Attribute { Attribute("viewBox", value) }
  static func d(_ value: String) -> Attribute { Attribute("d", value) }
  static func width(_ value: String) -> Attribute { Attribute("width", value) }
  static func height(_ value: String) -> Attribute { Attribute("height", value) }
  static func fill(_ value: String) -> Attribute { Attribute("fill", value) }
  static let crisp = Attribute("shape-rendering", "crispEdges")

  enum AriaName: String {
    case label, labelledby, describedby, invalid, current, live, hidden
  }

  /// What the script looks for.
  enum DataName: String {
    /// On `body`: how far the page is, for the stream of events.
    case mark
    /// A part that is replaced when something changed.
    case live
    /// A form that the fragment of the page's address is the first field of.
    case fragment
    /// A button that copies what the element of this id holds.
    case copy
    /// What gets the focus when the page opens.
    case focus
  }
}

/// An address within this server. Its literal parts are in the program; what is put in between is one component, with
/// whatever else it holds encoded.
struct Link: Sendable, ExpressibleByStringInterpolation, Equatable {
  let text: String

  init(stringLiteral value: String) { text = value }
  init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

  /// The same with a query. Names stand in the program; values may be anything.
  func asking(_ fields: KeyValuePairs<String, String?>) -> Link {
    var parts = StringInterpolation(literalCapacity: 0, interpolationCount: 0)
    parts.text = text
    for (name, value) in fields {
      guard let value else { continue }
      parts.appendLiteral(parts.text.contains("?") ? "&" : "?")
      parts.appendLiteral("\(name)=")
      parts.appendInterpolation(value)
    }
    return Link(stringInterpolation: parts)
  }

  struct StringInterpolation: StringInterpolationProtocol {
    var text = ""

    init(literalCapacity: Int, interpolationCount: Int) {}
    mutating func appendLiteral(_ literal: String) { text += literal }

    mutating func appendInterpolation(_ value: some CustomStringConvertible) {
      for byte in "\(value)".utf8 {
        switch byte {
        case 48...57, 65...90, 97...122, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
          text.unicodeScalars.append(Unicode.Scalar(byte))
        default: text += "%" + [byte].hexadecimalPair
        }
      }
    }
  }
}

extension [UInt8] {
  fileprivate var hexadecimalPair: String {
    map { byte in
      let digits = String(byte, radix: 16, uppercase: true)
      return digits.count == 1 ? "0\(digits)" : digits
    }
    .joined()
  }
}
