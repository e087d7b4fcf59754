#if os(Linux)
  import CofferContainer
  import CofferPolicy
  import Testing

  /// Documents as real programs write them, through the real helper, against policy's table.
  @Suite("Real documents")
  struct DocumentTests {
    private static let names = (try? DocumentFixtures.all().map(\.name)) ?? []
    private static let extensions = Set(names.compactMap { ContentType(fileName: $0, sniffed: nil).fileExtension })
    /// What a text program may have written under any of these names.
    private static let texts: Set = ["txt", "csv", "md", "swift", "json", "xml", "html", "svg", "rtf"]
    /// Types of which one is told from another by its content.
    private static let formats = extensions.subtracting(texts)

    private func sniffed(_ name: String) throws -> String {
      let bytes = try #require(try DocumentFixtures.all().first { $0.name == name }).bytes
      let content = try ContentTypeDetector(sniffer: ContentTypeHelper()).content(of: BytesReader(bytes))
      return try #require(content.mediaType)
    }

    @Test func `are there`() {
      #expect(Self.names.count > 40)
      #expect(Self.formats.isSuperset(of: ["pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "zip", "png"]))
    }

    /// Policy knows no extension for these, so nothing makes them pass.
    @Test(arguments: [
      ("handbook-libreoffice.docm", "application/vnd.ms-word.document.macroenabled.12", "docx"),
      ("moorings-libreoffice.xlsm", "application/vnd.ms-excel.sheet.macroenabled.12", "xlsx"),
    ]) func `with macros are not the plain ones`(name: String, type: String, plain: String) throws {
      #expect(try sniffed(name) == type)
      #expect(ContentType(fileExtension: plain, sniffed: type).agreement() == .disagrees)
      #expect(ContentType(fileName: name, sniffed: type).agreement() == .unknown)
    }

    private static let described = names.filter { !$0.hasSuffix(".docm") && !$0.hasSuffix(".xlsm") }

    @Test(arguments: described) func `are what their extensions say, and nothing else`(name: String) throws {
      let own = try #require(ContentType(fileName: name, sniffed: nil).fileExtension)
      let sniffed = try sniffed(name)
      #expect(ContentType(fileExtension: own, sniffed: sniffed).agreement() == .agrees, "\(sniffed)")
      let isPicture = ["jpg", "jpeg"].contains(own)
      let others = Self.formats.subtracting(isPicture ? ["jpg", "jpeg"] : [own])
      for other in Self.texts.contains(own) ? others : others.union(Self.texts) {
        #expect(ContentType(fileExtension: other, sniffed: sniffed).agreement() != .agrees, "as \(other)")
      }
    }

    /// A document with another one behind it is neither.
    @Test(arguments: names) func `are nothing once an archive hangs on them`(name: String) throws {
      let bytes = try #require(try DocumentFixtures.all().first { $0.name == name }).bytes
      let tail = ZipBuilder(names: ZipBuilder.wordNames).bytes()
      let content = try ContentTypeDetector(sniffer: ContentTypeHelper()).content(of: BytesReader(bytes + tail))
      #expect(content == .unknown)
    }
  }
#endif
