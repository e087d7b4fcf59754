/// Texts that devices wrote, as pages and files show them: one line stays one line, and nothing changes how the rest of
/// the page reads.
enum DeviceText {
  /// With everything that has no shape of its own as its number, such as `\u{202E}`.
  static func visible(_ text: String) -> String {
    var shown = ""
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
        shown += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      default: shown.unicodeScalars.append(scalar)
      }
    }
    return shown
  }
}
