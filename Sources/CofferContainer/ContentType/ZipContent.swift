/// What a ZIP archive is, told from its entries: an office document, a book, or just an archive.
enum ZipContent {
  /// The media type of the archive with `directory`; nil when it claims to be several things.
  static func mediaType(of directory: ZipDirectory, in content: some ContentReader) throws -> String? {
    let names = Names(directory)
    let office = officeOpen(names)
    let declared = try declared(by: directory, names, in: content)
    switch (office, declared) {
    case (.absent, .absent): return "application/zip"
    case (.type(let type), .absent), (.absent, .type(let type)):
      // A document is never encrypted by ZIP's own means: its parts could not be looked at.
      return directory.entries.contains { $0.isEncrypted } ? nil : type
    default: return nil
    }
  }

  private enum Finding {
    case absent
    case type(String)
    case contradictory
  }

  /// Office Open XML (ECMA-376, part 2): `[Content_Types].xml`, and the folder of one kind of document.
  private static func officeOpen(_ names: Names) -> Finding {
    guard names.contains("[content_types].xml") else { return .absent }
    let kinds = [
      (
        "word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.ms-word.document.macroenabled.12"
      ),
      (
        "xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.ms-excel.sheet.macroenabled.12"
      ),
      (
        "ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12"
      ),
    ]
    let found = kinds.filter { names.contains(prefix: $0.0) }
    // Another format that is packed the same way, such as a drawing or a software package.
    guard let (_, plain, withMacros) = found.first else { return .absent }
    guard found.count == 1, names.contains("_rels/.rels") else { return .contradictory }
    if names.contains("xl/workbook.bin") { return .type("application/vnd.ms-excel.sheet.binary.macroenabled.12") }
    return .type(names.contains(suffix: "vbaproject.bin") ? withMacros : plain)
  }

  /// OpenDocument (part 2, 3.3) and EPUB (OCF 3.3): the first entry is `mimetype`, stored, and holds the media type.
  private static func declared(
    by directory: ZipDirectory, _ names: Names, in content: some ContentReader
  ) throws -> Finding {
    guard let first = directory.entries.first, first.name.elementsEqual("mimetype".utf8) else {
      // Elsewhere it is a rule broken, and readers differ in whether they mind.
      return names.contains("mimetype") ? .contradictory : .absent
    }
    guard first.method == 0, first.byteCount <= 128, !first.isEncrypted,
      let bytes = try content.bytes(at: first.dataOffset, count: Int(first.byteCount))
    else { return .contradictory }
    let type = String(decoding: bytes, as: UTF8.self)
    switch type {
    case "application/epub+zip":
      return names.contains("meta-inf/container.xml") ? .type(type) : .contradictory
    case _ where type.hasPrefix("application/vnd.oasis.opendocument.") && MediaType.isValid(type):
      return names.contains("meta-inf/manifest.xml") ? .type(type) : .contradictory
    default:
      return .absent
    }
  }

  /// Names of entries, compared without regard to ASCII case, as office programs compare them.
  private struct Names {
    private let all: Set<String>

    init(_ directory: ZipDirectory) {
      // Bytes that are not UTF-8 become replacement characters, which equal none of the names looked for.
      all = Set(directory.entries.map { String(decoding: $0.name, as: UTF8.self).lowercased() })
    }

    func contains(_ name: String) -> Bool { all.contains(name) }
    func contains(prefix: String) -> Bool { all.contains { $0.hasPrefix(prefix) } }
    func contains(suffix: String) -> Bool { all.contains { $0.hasSuffix(suffix) } }
  }
}
