import Glibc

/// A name in a folder, as getdents64(2) gives it.
struct ListedName: Hashable, Sendable {
  let bytes: [UInt8]
  let number: UInt
  /// The kind of node as `st_mode` has it.
  let kind: mode_t
  /// Where the listing goes on behind this name.
  let cookie: Int

  var name: String { String(decoding: bytes, as: UTF8.self) }
  var isDots: Bool { bytes == [0x2e] || bytes == [0x2e, 0x2e] }
}

extension Handle {
  /// The next names of an open folder, as many as the buffer holds; none at the end.
  func listing(bufferSize: Int = 32 << 10) throws -> [ListedName] {
    var buffer = [UInt8](repeating: 0, count: bufferSize)
    let count = try CallError.check(GNU.entries(number, &buffer, bufferSize))
    var result: [ListedName] = []
    buffer.withUnsafeBytes { bytes in
      // struct linux_dirent64: inode number, cookie, length of the record, kind, and the name with a zero behind it.
      var start = 0
      while start < count {
        let length = Int(bytes.loadUnaligned(fromByteOffset: start + 16, as: UInt16.self))
        let name = bytes[(start + 19)..<(start + length)].prefix { $0 != 0 }
        result.append(
          ListedName(
            bytes: Array(name), number: UInt(bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)),
            kind: mode_t(bytes[start + 18]) << 12,
            cookie: Int(bytes.loadUnaligned(fromByteOffset: start + 8, as: Int64.self))))
        start += length
      }
    }
    return result
  }

  /// All names from where the folder's position is, `.` and `..` among them.
  func wholeListing(bufferSize: Int = 32 << 10) throws -> [ListedName] {
    var result: [ListedName] = []
    while true {
      let part = try listing(bufferSize: bufferSize)
      if part.isEmpty { return result }
      result += part
    }
  }
}

extension Kernel {
  static func listing(_ path: String) throws -> [ListedName] {
    try Handle(path, O_RDONLY | O_DIRECTORY).wholeListing()
  }

  /// The names in a folder, sorted, without `.` and `..`.
  static func names(_ path: String) throws -> [String] {
    try listing(path).filter { !$0.isDots }.map(\.name).sorted()
  }
}
