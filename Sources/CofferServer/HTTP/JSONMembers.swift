internal import Foundation

/// Looks through JSON for what decoders pass over: an object with two members of one name, of which one reader takes the
/// first and another the last.
enum JSONMembers {
  /// Deeper than any body of the API.
  static let maximumDepth = 64

  /// Whether each object of `json` has each name once, as names are after their escapes are undone, and nothing is nested
  /// beyond ``maximumDepth``. Of what is not JSON it may say either; the decoder refuses that.
  static func areUnique(in json: [UInt8]) -> Bool {
    // The names of each open object; nil is a list.
    var open: [Set<String>?] = []
    // Whether the next string is a name.
    var expectsName = false
    var index = 0
    while index < json.count {
      switch json[index] {
      case UInt8(ascii: "{"):
        open.append([])
        expectsName = true
      case UInt8(ascii: "["):
        open.append(nil)
        expectsName = false
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        _ = open.popLast()
        expectsName = false
      case UInt8(ascii: ","): expectsName = open.last.map { $0 != nil } ?? false
      case UInt8(ascii: "\""):
        let end = endOfString(json, from: index)
        if expectsName {
          expectsName = false
          guard let name = name(json[index..<end]), open[open.count - 1]?.insert(name).inserted == true else {
            return false
          }
        }
        index = end
        continue
      default: break
      }
      guard open.count <= maximumDepth else { return false }
      index += 1
    }
    return true
  }

  /// The index behind the closing quotation mark.
  private static func endOfString(_ json: [UInt8], from start: Int) -> Int {
    var index = start + 1
    while index < json.count, json[index] != UInt8(ascii: "\"") {
      index += json[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    return min(index + 1, json.count)
  }

  private static func name(_ text: ArraySlice<UInt8>) -> String? {
    guard text.contains(UInt8(ascii: "\\")) else {
      return String(validating: text.dropFirst().dropLast(), as: UTF8.self)
    }
    return try? JSONDecoder().decode(String.self, from: Data(text))
  }
}
