/// Tells from a file's bytes alone what it is: the sniffer looks at its beginning, and what follows holds against it
/// whatever would let a file be two things.
public struct ContentTypeDetector: Sendable {
  /// How many bytes the sniffer is given at most.
  public static let headLimit = 1 << 20

  private let sniffer: any ContentSniffer

  public init(sniffer: any ContentSniffer) { self.sniffer = sniffer }

  /// What `content` is. Throws only what reading it throws: bytes that cannot be understood are `.unknown`.
  public func content(of content: some ContentReader) throws -> DetectedContent {
    guard content.byteCount > 0 else { return .mediaType("application/x-empty") }
    let count = Int(min(UInt64(Self.headLimit), content.byteCount))
    guard let head = try content.bytes(at: 0, count: count) else { return .unknown }
    let type = try Self.isZip(head) ? archiveType(of: content, head) : sniffedType(of: content, head)
    return type.map { .mediaType($0) } ?? .unknown
  }

  private static func isZip(_ head: [UInt8]) -> Bool {
    head.starts(with: ZipRecord.localSignature) || head.starts(with: ZipEnd.signature)
  }

  private func archiveType(of content: some ContentReader, _ head: [UInt8]) throws -> String? {
    guard let directory = try ZipDirectory(of: content),
      let type = try ZipContent.mediaType(of: directory, in: content)
    else { return nil }
    // An archive may store a PDF; a document that a PDF reader would open as well is meant to deceive.
    return type != "application/zip" && Self.holdsPDFHeader(head) ? nil : type
  }

  private func sniffedType(of content: some ContentReader, _ head: [UInt8]) throws -> String? {
    guard let type = sniffer.mediaType(of: head), MediaType.isValid(type), type != "application/octet-stream",
      try !ZipEnd.isInTail(of: content)
    else { return nil }
    if type == "application/pdf" || type.hasPrefix("text/") { return type }
    return Self.holdsPDFHeader(head) ? nil : type
  }

  /// PDF readers accept the header anywhere in the first 1,024 bytes.
  private static func holdsPDFHeader(_ head: [UInt8]) -> Bool {
    let start = head.prefix(1024 + 4)
    return start.indices.contains { start[$0...].starts(with: "%PDF-".utf8) }
  }
}
