internal import CofferFiles

extension VaultPath {
  /// A path that a person typed. An empty one is a mistake, such as a variable without a value, and not the root folder.
  init(argument text: String) throws {
    guard !text.isEmpty else { throw Failure.usage("a path in the vault is empty; the root folder is /") }
    self = try PathText.naming(Array(text.utf8)) { try VaultPath(text) }
  }

  /// The path as it is typed, from the root folder.
  var bytes: [UInt8] { names.isEmpty ? [UInt8(ascii: "/")] : names.flatMap { [UInt8(ascii: "/")] + $0 } }

  /// The same as text. What was typed is UTF-8.
  var text: String { String(decoding: bytes, as: UTF8.self) }
}
