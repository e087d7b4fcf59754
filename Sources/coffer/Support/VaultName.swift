internal import CofferSystem
internal import Foundation

/// The last part of a vault's path: what a person types before something that cannot be undone.
struct VaultName {
  private let text: String

  init(_ path: String) { text = URL(filePath: path).standardizedFileURL.lastPathComponent }

  /// Asks for the name on the terminal. Throws where another is typed, and where there is no terminal.
  func require(to purpose: String) throws {
    guard let answer = try Terminal.readLine(prompt: "To \(purpose), type the vault's name (\(text)): ") else {
      throw Failure.usage("there is no terminal to ask; with --yes nothing is asked")
    }
    guard answer == Array(text.utf8) else { throw Failure.usage("that is not the vault's name; nothing was changed") }
  }
}
