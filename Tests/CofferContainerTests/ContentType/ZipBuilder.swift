/// Writes ZIP archives, well-formed ones and ones with a lie at a chosen place.
struct ZipBuilder {
  struct File {
    var name: String
    var data: [UInt8]
    var method: UInt16 = 0
    var flags: UInt16 = 0
    /// What the header before the data says instead of the name.
    var localName: String?
    /// What the directory says instead of the size.
    var directorySize: UInt32?
    /// Bytes between this file's data and what follows.
    var gapAfter: [UInt8] = []

    init(_ name: String, _ data: [UInt8] = []) {
      self.name = name
      self.data = data
    }
    init(_ name: String, _ text: String) { self.init(name, Array(text.utf8)) }
  }

  var files: [File]
  var comment: [UInt8] = []
  /// Bytes between the entries and the directory.
  var beforeDirectory: [UInt8] = []
  /// Added to every offset that is written.
  var offsetShift = 0
  var stateEntryCount: UInt16?
  var disk: UInt16 = 0

  init(_ files: [File]) { self.files = files }
  /// Files that are empty but for the given texts.
  init(names: [String]) { files = names.map { File($0) } }

  func bytes() -> [UInt8] {
    var result: [UInt8] = []
    var directory: [UInt8] = []
    for file in files {
      let offset = result.count + offsetShift
      let size = UInt32(file.data.count)
      let local = Array((file.localName ?? file.name).utf8)
      let descriptor = file.flags & 8 != 0
      result += [0x50, 0x4b, 3, 4] + le(UInt16(20)) + le(file.flags) + le(file.method) + le(UInt32(0)) + le(UInt32(0))
      result += descriptor ? le(UInt32(0)) + le(UInt32(0)) : le(size) + le(size)
      result += le(UInt16(local.count)) + le(UInt16(0)) + local + file.data
      if descriptor { result += [0x50, 0x4b, 7, 8] + le(UInt32(0)) + le(size) + le(size) }
      result += file.gapAfter
      let name = Array(file.name.utf8)
      let stated = file.directorySize ?? size
      directory += [0x50, 0x4b, 1, 2] + le(UInt16(20)) + le(UInt16(20)) + le(file.flags) + le(file.method)
      directory += le(UInt32(0)) + le(UInt32(0)) + le(stated) + le(stated)
      directory += le(UInt16(name.count)) + le(UInt16(0)) + le(UInt16(0)) + le(UInt16(0)) + le(UInt16(0))
      directory += le(UInt32(0)) + le(UInt32(offset)) + name
    }
    result += beforeDirectory
    let start = result.count + offsetShift
    let count = stateEntryCount ?? UInt16(files.count)
    result += directory
    result += [0x50, 0x4b, 5, 6] + le(disk) + le(UInt16(0)) + le(count) + le(count) + le(UInt32(directory.count))
    return result + le(UInt32(start)) + le(UInt16(comment.count)) + comment
  }

  private func le(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
}

extension ZipBuilder {
  static let wordNames = ["[Content_Types].xml", "_rels/.rels", "word/document.xml", "word/styles.xml"]

  /// A document that declares `type` in a first entry, as OpenDocument and EPUB do.
  static func declaring(_ type: String, _ names: [String]) -> ZipBuilder {
    ZipBuilder([File("mimetype", type)] + names.map { File($0, "x") })
  }
}
