import CofferSystem
import CofferTestSupport
import Foundation

@testable import CofferCrypto

/// Whole data in RNCryptor's format, made and opened in portions.
enum RNCryptorBytes {
  static func secretBytes(_ bytes: [UInt8]) -> SecretBytes { bytes.withUnsafeBytes { SecretBytes(copying: $0) } }

  static func password(_ text: String) -> RNCryptorSecret { .password(secretBytes(Array(text.utf8))) }

  static func keys(_ bytes: [UInt8]) throws -> RNCryptorSecret {
    .keys(try RNCryptorKeys(file: secretBytes(bytes)))
  }

  /// Portions have `portion()` blocks.
  static func sealed(
    _ plaintext: [UInt8], _ secret: RNCryptorSecret, header: RNCryptorHeader? = nil, portion: () -> Int = { 4096 }
  ) throws -> [UInt8] {
    var sealer = try RNCryptorSealer(secret: secret, header: header ?? RNCryptorHeader(for: secret))
    var data = sealer.header
    var rest = plaintext[...]
    var isLast = false
    while !isLast {
      let part = rest.prefix(portion() * 16)
      rest = rest.dropFirst(part.count)
      isLast = rest.isEmpty
      var buffer = Array(part) + [UInt8](repeating: 0xee, count: RNCryptorSealer.paddingByteCount)
      let count = buffer.withUnsafeMutableBytes { sealer.seal($0, count: part.count, isLast: isLast) }
      data += buffer[..<count]
    }
    return data + sealer.tag()
  }

  /// Buffers have `portion()` blocks. What is lent goes to `lent` as it comes, also where the end throws.
  static func open(
    _ data: [UInt8], _ secret: RNCryptorSecret, portion: () -> Int = { 4096 }, lent: (ArraySlice<UInt8>) -> Void
  ) throws {
    let opener = try RNCryptorOpener(secret: secret)
    var rest = data[...]
    while true {
      var buffer = [UInt8](repeating: 0xee, count: portion() * 16)
      let (portion, count) = try buffer.withUnsafeMutableBytes { bytes in
        let portion = try opener.next(into: bytes) { part in
          let count = min(part.count, rest.count)
          part.copyBytes(from: rest.prefix(count))
          rest = rest.dropFirst(count)
          return count
        }
        return (portion, try portion.open(bytes))
      }
      if portion.byteCount == 0 { return }
      lent(buffer[..<count])
    }
  }

  static func opened(
    _ data: [UInt8], _ secret: RNCryptorSecret, portion: () -> Int = { 4096 }
  ) throws -> [UInt8] {
    var plaintext: [UInt8] = []
    try open(data, secret, portion: portion) { plaintext += $0 }
    return plaintext
  }
}

/// The vectors in Tests/Fixtures/RNCryptor: lines of fields between bars.
struct RNCryptorVector: CustomStringConvertible, Sendable {
  let name: String
  let secret: String
  let plaintext: [UInt8]
  let data: [UInt8]

  var description: String { name }

  static func all(_ file: String) -> [RNCryptorVector] {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Fixtures/RNCryptor").standardizedFileURL
    let text = try? String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
    return (text ?? "").split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
      let fields = line.components(separatedBy: " | ")
      guard fields.count == 4, let plaintext = [UInt8](hexadecimal: fields[2]),
        let data = [UInt8](hexadecimal: fields[3])
      else { return nil }
      return RNCryptorVector(name: fields[0], secret: fields[1], plaintext: plaintext, data: data)
    }
  }
}
