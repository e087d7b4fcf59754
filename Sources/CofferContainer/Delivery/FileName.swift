/// Names of files: byte strings, as POSIX has them.
enum FileName {
  static let byteLimit = 255

  /// Whether a file in a folder can have this name.
  static func isValid(_ name: [UInt8]) -> Bool {
    (1...byteLimit).contains(name.count) && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
      && !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
  }

  /// The name with `-number` before its extension: `report-2.pdf`. It is shortened where it would be too long; the
  /// extension, which says what the file is, is kept.
  static func numbered(_ name: [UInt8], _ number: Int) -> [UInt8] {
    let dot = name.lastIndex(of: UInt8(ascii: ".")) ?? 0
    // A dot in the first place hides a file and starts no extension; what is very long is none either.
    let split = dot > 0 && name.count - dot <= 64 ? dot : name.count
    let suffix = Array("-\(number)".utf8) + name[split...]
    var stem = name[..<min(split, byteLimit - suffix.count)]
    // Not in the middle of a UTF-8 character: those have at most three bytes of the form 10xxxxxx.
    for _ in 0..<3 where stem.count < split && name[stem.endIndex] & 0xC0 == 0x80 { stem = stem.dropLast() }
    return Array(stem) + suffix
  }
}
