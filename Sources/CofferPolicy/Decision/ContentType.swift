/// What a file says it is, by its extension, and what its content was recognised as.
public struct ContentType: Hashable, Sendable {
  /// Lower case, without the dot; absent when the name has none.
  public var fileExtension: String?
  /// The media type of the content, such as `application/pdf`; absent when it was not recognised.
  public var sniffed: String?

  public init(fileExtension: String?, sniffed: String?) {
    self.fileExtension = fileExtension
    self.sniffed = sniffed
  }

  /// Takes the extension from a file's name: what stands after the last dot, unless the dot comes first.
  public init(fileName: some StringProtocol, sniffed: String?) {
    let parts = fileName.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let isNamed = parts.count > 2 || (parts.count == 2 && !parts[0].isEmpty)
    let text = parts.last.map { String(decoding: $0, as: UTF8.self) } ?? ""
    self.init(fileExtension: isNamed && !text.isEmpty ? text.lowercased() : nil, sniffed: sniffed)
  }

  /// Whether extension and content belong together.
  public enum Agreement: Hashable, Sendable {
    case agrees
    /// The extension or the content is one that nobody described.
    case unknown
    case disagrees
  }

  /// Compares with the built-in table and with the types that a company added.
  public func agreement(adding fileTypes: [FileType] = []) -> Agreement {
    guard let fileExtension, let sniffed else { return .unknown }
    if let accepted = Self.accepted[fileExtension] { return accepted.contains(sniffed) ? .agrees : .disagrees }
    if Self.textExtensions.contains(fileExtension) {
      // A page of Markdown may well begin with HTML.
      let isMarkdown = Self.markdownExtensions.contains(fileExtension)
      return Self.isPlainText(sniffed) || (isMarkdown && sniffed == "text/html") ? .agrees : .disagrees
    }
    guard let type = fileTypes.first(where: { $0.extension == fileExtension }) else { return .unknown }
    return type.mediaTypes.contains(sniffed) ? .agrees : .disagrees
  }

  /// A media type that content of this extension may have; nil when nobody described it.
  public static func expected(of fileExtension: String, adding fileTypes: [FileType] = []) -> String? {
    if let accepted = accepted[fileExtension] { return accepted.min() }
    if textExtensions.contains(fileExtension) { return "text/plain" }
    return fileTypes.first { $0.extension == fileExtension }?.mediaTypes.first
  }

  static func isBuiltIn(_ fileExtension: String) -> Bool {
    accepted[fileExtension] != nil || textExtensions.contains(fileExtension)
  }

  /// Text without mark-up that a reader would act on. Recognisers name many kinds of source and of data, and disagree on
  /// most (`text/x-c`, `text/x-script.python`); a file of any of them is text.
  private static func isPlainText(_ sniffed: String) -> Bool {
    sniffed.hasPrefix("text/") ? !markupTypes.contains(sniffed) : otherTextTypes.contains(sniffed)
  }
}
