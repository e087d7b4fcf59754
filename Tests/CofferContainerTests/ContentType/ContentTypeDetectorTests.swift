import Testing

@testable import CofferContainer

@Suite("Detecting content, whatever the sniffer says")
struct ContentTypeDetectorTests {
  private static let office = "application/vnd.openxmlformats-officedocument."
  private static let openDocument = "application/vnd.oasis.opendocument."

  private func detect(_ bytes: [UInt8], sniffed: String? = nil) throws -> String? {
    try ContentTypeDetector(sniffer: FixedSniffer(answer: sniffed)).content(of: BytesReader(bytes)).mediaType
  }

  struct Archive: CustomTestStringConvertible {
    let names: [String]
    let expected: String?
    var testDescription: String { names.joined(separator: " ") }

    init(_ names: [String], _ expected: String?) {
      self.names = names
      self.expected = expected
    }
  }

  private static let content = ["[Content_Types].xml", "_rels/.rels"]

  static let archives = [
    Archive(["a.txt"], "application/zip"),
    Archive(ZipBuilder.wordNames, office + "wordprocessingml.document"),
    Archive(content + ["xl/workbook.xml"], office + "spreadsheetml.sheet"),
    Archive(content + ["ppt/presentation.xml"], office + "presentationml.presentation"),
    Archive(["[CONTENT_TYPES].XML", "_RELS/.RELS", "WORD/document.xml"], office + "wordprocessingml.document"),
    Archive(ZipBuilder.wordNames + ["word/vbaProject.bin"], "application/vnd.ms-word.document.macroenabled.12"),
    Archive(ZipBuilder.wordNames + ["word/VBAPROJECT.BIN"], "application/vnd.ms-word.document.macroenabled.12"),
    Archive(content + ["xl/a", "xl/vbaProject.bin"], "application/vnd.ms-excel.sheet.macroenabled.12"),
    Archive(content + ["xl/workbook.bin"], "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    Archive(content + ["ppt/a", "ppt/vbaProject.bin"], "application/vnd.ms-powerpoint.presentation.macroenabled.12"),
    // An archive of somebody's folder named word is no document.
    Archive(["word/document.xml"], "application/zip"),
    Archive(content + ["visio/document.xml"], "application/zip"),
    // Two documents in one, and one that lacks what every document has.
    Archive(ZipBuilder.wordNames + ["xl/workbook.xml"], nil),
    Archive(["[Content_Types].xml", "word/document.xml"], nil),
  ]

  @Test(arguments: archives) func `an archive is what its entries are`(archive: Archive) throws {
    #expect(try detect(ZipBuilder(names: archive.names).bytes(), sniffed: "application/pdf") == archive.expected)
  }

  struct Declaration: CustomTestStringConvertible {
    let type: String
    let names: [String]
    let expected: String?
    var testDescription: String { type }

    init(_ type: String, _ names: [String], _ expected: String?) {
      self.type = type
      self.names = names
      self.expected = expected
    }
  }

  static let declarations = [
    Declaration(openDocument + "text", ["content.xml", "META-INF/manifest.xml"], openDocument + "text"),
    Declaration(openDocument + "spreadsheet", ["META-INF/manifest.xml"], openDocument + "spreadsheet"),
    Declaration("application/epub+zip", ["META-INF/container.xml"], "application/epub+zip"),
    Declaration("application/x-other", ["a"], "application/zip"),
    Declaration("application/pdf", ["META-INF/manifest.xml"], "application/zip"),
    // Declared, but without what every such document has; or two documents in one.
    Declaration(openDocument + "text", ["content.xml"], nil),
    Declaration("application/epub+zip", ["META-INF/manifest.xml"], nil),
    Declaration(openDocument + "text", ["META-INF/manifest.xml"] + ZipBuilder.wordNames, nil),
    Declaration(openDocument + "text\n", ["META-INF/manifest.xml"], "application/zip"),
    Declaration(openDocument + String(repeating: "x", count: 200), ["META-INF/manifest.xml"], nil),
  ]

  @Test(arguments: declarations) func `an archive may declare its type`(declaration: Declaration) throws {
    let bytes = ZipBuilder.declaring(declaration.type, declaration.names).bytes()
    #expect(try detect(bytes) == declaration.expected)
  }

  @Test func `a declaration counts in the first place only, stored and in the clear`() throws {
    var late = ZipBuilder.declaring(Self.openDocument + "text", ["META-INF/manifest.xml"])
    late.files.swapAt(0, 1)
    #expect(try detect(late.bytes()) == nil)
    var deflated = ZipBuilder.declaring(Self.openDocument + "text", ["META-INF/manifest.xml"])
    deflated.files[0].method = 8
    #expect(try detect(deflated.bytes()) == nil)
    var encrypted = ZipBuilder.declaring(Self.openDocument + "text", ["META-INF/manifest.xml"])
    encrypted.files[1].flags = 1
    #expect(try detect(encrypted.bytes()) == nil)
    encrypted.files[0].name = "a"
    #expect(try detect(encrypted.bytes()) == "application/zip")
  }

  @Test(arguments: Lie.all.filter { !$0.bytes.isEmpty }) func `a lying archive is unknown, even as text`(lie: Lie)
    throws
  {
    for sniffed in ["application/zip", "text/plain", "application/pdf"] {
      // Cut so short that it has no end record, it is text to the sniffer, and an archive to nobody.
      if try !ZipEnd.isInTail(of: BytesReader(lie.bytes)), !lie.bytes.starts(with: [0x50, 0x4b]) { continue }
      #expect(try detect(lie.bytes, sniffed: sniffed) == nil)
    }
  }

  @Test(arguments: ["application/pdf", "text/plain", "image/png", "application/x-dosexec"])
  func `what ends as an archive is nothing else`(sniffed: String) throws {
    let archive = ZipBuilder(names: ZipBuilder.wordNames).bytes()
    let header = Array("%PDF-1.7\n".utf8) + [UInt8](repeating: 0x20, count: 100_000)
    var shifted = ZipBuilder(names: ZipBuilder.wordNames)
    shifted.offsetShift = header.count
    var commented = ZipBuilder(names: ZipBuilder.wordNames)
    commented.comment = [UInt8](repeating: 0x20, count: 65_535)
    let locator: [UInt8] = [0x50, 0x4b, 6, 7] + [UInt8](repeating: 0, count: 16)
    for tail in [
      archive, shifted.bytes(), archive + Array("%%EOF\n".utf8), commented.bytes(), locator + archive.suffix(22),
    ] {
      #expect(try detect(header + tail, sniffed: sniffed) == nil)
    }
    let many = [UInt8]((0..<17).flatMap { _ in archive.suffix(22) })
    #expect(try detect(header + many, sniffed: sniffed) == nil)
  }

  @Test func `a mention of the signature is no archive`() throws {
    let text = Array("An end record starts with PK\u{5}\u{6} and goes on for a while, in text like this one.".utf8)
    #expect(try detect(text, sniffed: "text/plain") == "text/plain")
  }

  @Test func `a PDF header inside something else is a lie`() throws {
    let picture = Array("GIF89a............%PDF-1.4\n".utf8)
    #expect(try detect(picture, sniffed: "image/gif") == nil)
    #expect(try detect(picture, sniffed: "text/plain") == "text/plain")
    #expect(try detect(picture, sniffed: "application/pdf") == "application/pdf")
    let late = Array("GIF89a".utf8) + [UInt8](repeating: 0, count: 1024) + Array("%PDF-1.4\n".utf8)
    #expect(try detect(late, sniffed: "image/gif") == "image/gif")
    var document = ZipBuilder(names: ZipBuilder.wordNames)
    document.files.append(.init("word/media/a", "%PDF-1.4"))
    #expect(try detect(document.bytes()) == nil)
    #expect(try detect(ZipBuilder([.init("a.pdf", "%PDF-1.4")]).bytes()) == "application/zip")
  }

  @Test(arguments: [
    nil, "", "text", "text/", "/plain", "text/plain; charset=us-ascii", "Text/Plain", "text/plain\n", "te xt/plain",
    "text/plain/x", "application/octet-stream", "text/" + String(repeating: "a", count: 128), "tëxt/plain",
  ]) func `an answer in another form is unknown`(answer: String?) throws {
    #expect(try detect([1, 2, 3], sniffed: answer) == nil)
  }

  @Test func `an empty file is empty, whatever the sniffer says`() throws {
    #expect(try detect([], sniffed: "application/pdf") == "application/x-empty")
  }

  @Test func `the sniffer sees the head and no more`() throws {
    struct Counting: ContentSniffer {
      func mediaType(of head: [UInt8]) -> String? { "text/x-\(head.count)" }
    }
    let detector = ContentTypeDetector(sniffer: Counting())
    #expect(try detector.content(of: BytesReader([1, 2, 3])) == .mediaType("text/x-3"))
    let large = BytesReader([UInt8](repeating: 0x20, count: ContentTypeDetector.headLimit + 5))
    #expect(try detector.content(of: large) == .mediaType("text/x-1048576"))
    #expect(large.readsOutside == 0)
  }

  @Test func `a reader that fails is an error, and one that ends too soon is unknown`() throws {
    struct Damaged: Error {}
    struct Failing: ContentReader {
      let byteCount: UInt64 = 10
      func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int { throw Damaged() }
    }
    struct Short: ContentReader {
      let byteCount: UInt64 = 10
      func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int { 0 }
    }
    let detector = ContentTypeDetector(sniffer: FixedSniffer(answer: "text/plain"))
    #expect(throws: Damaged.self) { try detector.content(of: Failing()) }
    #expect(try detector.content(of: Short()) == .unknown)
  }
}
