/// The entries of a ZIP archive (PKWARE APPNOTE 6.3.10), read only where every reader of ZIP would agree on them.
///
/// A ZIP is read from its end, so bytes may hide before it, behind it and between its entries, and two readers may see
/// two archives in one file. What is accepted here leaves no such room:
/// 1. one end record, whose comment ends with the file, and no second one in that comment;
/// 2. the central directory ends where the end record starts, and holds exactly the entries that are announced;
/// 3. the entries lie one after the other from byte 0 to the central directory, without gap or overlap;
/// 4. the header before each entry's data says the same as the directory; no name comes twice.
///
/// Archives in ZIP64 or on several disks are not accepted. No size that the file states is used before it is checked
/// against the file's own, and memory is bounded by `directoryLimit`.
struct ZipDirectory: Equatable {
  struct Entry: Equatable {
    /// As stored: bytes of no stated encoding, with `/` between folders.
    let name: [UInt8]
    /// 0 is stored, 8 is deflated.
    let method: UInt16
    let flags: UInt16
    /// Bytes in the archive.
    let byteCount: UInt64
    /// Where the bytes start.
    let dataOffset: UInt64

    var isEncrypted: Bool { flags & 1 != 0 }
  }

  /// In the order of their places in the file.
  let entries: [Entry]

  static let entryLimit = 4096
  static let directoryLimit = 1 << 20

  /// Reads the directory of `content`; nil unless `content` is a ZIP as described above.
  init?(of content: some ContentReader) throws {
    guard let end = try ZipEnd(of: content), end.entryCount <= Self.entryLimit,
      end.directorySize <= UInt64(Self.directoryLimit),
      // The directory ends where the end record starts.
      end.directoryOffset <= end.offset, end.offset - end.directoryOffset == end.directorySize,
      let directory = try content.bytes(at: end.directoryOffset, count: Int(end.directorySize)),
      let records = ZipRecord.all(in: directory, count: end.entryCount)
    else { return nil }

    var entries: [Entry] = []
    var names: Set<[UInt8]> = []
    var place: UInt64 = 0
    for record in records.sorted(by: { $0.offset < $1.offset }) {
      guard names.insert(record.name).inserted, record.offset >= place, end.directoryOffset > record.offset,
        // Between an entry's data and the next header there is at most the data descriptor that its flags announce.
        record.offset == place || entries.last?.allowsGap(record.offset - place) == true,
        let dataOffset = try record.dataOffset(in: content),
        dataOffset <= end.directoryOffset, record.byteCount <= end.directoryOffset - dataOffset
      else { return nil }
      entries.append(
        Entry(
          name: record.name, method: record.method, flags: record.flags, byteCount: record.byteCount,
          dataOffset: dataOffset))
      place = dataOffset + record.byteCount
    }
    guard place == end.directoryOffset || entries.last?.allowsGap(end.directoryOffset - place) == true else {
      return nil
    }
    self.entries = entries
  }
}

extension ZipDirectory.Entry {
  /// Bit 3 of the flags: sizes follow the data, in 12 bytes, or 16 with a signature.
  fileprivate func allowsGap(_ count: UInt64) -> Bool { flags & 8 != 0 && (count == 12 || count == 16) }
}
