internal import CofferServer
internal import GRDB

/// What is bound to a statement's parameters. Text with a NUL is refused: the engine reads text to its first NUL, so that
/// it would find and keep another text than the one that was checked.
struct StoredValues: ExpressibleByArrayLiteral {
  private let values: [(any DatabaseValueConvertible)?]

  init(arrayLiteral values: (any DatabaseValueConvertible)?...) { self.values = values }

  /// Throws `ServerError.invalid` for text with a NUL.
  func bound() throws -> StatementArguments {
    for case let text as String in values where text.utf8.contains(0) {
      throw ServerError.invalid("text has no NUL character")
    }
    return StatementArguments(values)
  }
}
