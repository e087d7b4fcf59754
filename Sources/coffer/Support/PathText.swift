internal import CofferFiles
internal import CofferSystem

/// Paths in what a person reads.
enum PathText {
  /// Runs `body`; what fails says which path it was about.
  ///
  /// On a terminal only: there it answers whoever typed the path. What else standard error leads to may be kept as a log,
  /// and a name in a vault has no place there.
  static func naming<Result>(_ path: @autoclosure () -> [UInt8], _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      guard Session.present.errors.isTerminal, let failure = Failure(error), !failure.isNamed, failure.code != 130
      else {
        throw error
      }
      let name = shown(path())
      let text = failure.text.hasPrefix("\(name): ") ? failure.text : "\(name): \(failure.text)"
      throw Failure(code: failure.code, text: text, isNamed: true)
    }
  }

  /// As above, for a path in the vault.
  static func naming<Result>(_ path: VaultPath, _ body: () throws -> Result) throws -> Result {
    try naming(path.bytes, body)
  }

  /// A path on one line, that cannot steer the terminal that shows it.
  static func shown(_ path: [UInt8]) -> String {
    String(
      String.UnicodeScalarView(
        String(decoding: path, as: UTF8.self).unicodeScalars.map { scalar in
          // Format characters too: marks of direction make a name read as another.
          [.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
            ? "\u{fffd}" : scalar
        }))
  }

  /// The path of `name` in a folder of the system.
  static func joined(_ folder: [UInt8], _ name: [UInt8]) -> [UInt8] {
    folder.last == UInt8(ascii: "/") ? folder + name : folder + [UInt8(ascii: "/")] + name
  }
}

/// A path in an answer in JSON: text, and the bytes in hexadecimal digits where they are not UTF-8.
struct PathDescription: Encodable {
  let path: String
  let pathBytes: String?

  init(_ bytes: [UInt8]) {
    path = String(decoding: bytes, as: UTF8.self)
    pathBytes = Array(path.utf8) == bytes ? nil : bytes.hexadecimal
  }
}
