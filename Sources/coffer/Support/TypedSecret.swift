internal import CofferSystem
internal import Foundation

/// A secret that a person knows, and where it comes from: a file, standard input, or a prompt on the terminal.
struct TypedSecret {
  /// What it is called.
  let name: String
  /// The option that names its file.
  let option: String

  /// What opens a vault.
  static let passcode = TypedSecret(name: "passcode", option: "--passcode-file")
  /// What is to open it from now on.
  static let newPasscode = TypedSecret(name: "passcode", option: "--new-passcode-file")

  /// What opens a vault without its passcode, from a file.
  static let recoveryKey = TypedSecret(name: "recovery key", option: "--recovery-key-file")

  /// What the holder of a company's escrow key told the person.
  static let clearingCode = TypedSecret(name: "code", option: "--code-file")

  private static let limit = 1024

  /// One that is there already, asked for once. An empty one is refused, so that an empty file is not taken for a try.
  func existing(_ file: String?, prompt: String? = nil) throws -> SecretBytes {
    let prompt = prompt ?? "\(name.prefix(1).uppercased())\(name.dropFirst()): "
    guard let secret = try file.map(read) ?? Session.present.readSecret(prompt: prompt) else { throw noTerminal }
    guard secret.count > 0 else { throw Failure.usage("the \(name) is empty; nothing was tried") }
    return secret
  }

  /// Takes the line away from standard input where nobody needs it: what follows is a file's content.
  func passOver(_ file: String?) throws { if file == "-" { _ = try read("-") } }

  /// A new one, asked for twice.
  func new(_ file: String?) throws -> SecretBytes {
    let secret: SecretBytes
    if let file {
      secret = try read(file)
    } else {
      guard let first = try Session.present.readSecret(prompt: "New \(name): ") else { throw noTerminal }
      guard let second = try Session.present.readSecret(prompt: "The same again: ") else { throw noTerminal }
      let same = first.withUnsafeBytes { left in second.withUnsafeBytes { right in left.elementsEqual(right) } }
      guard same else { throw Failure.usage("the two \(name)s differ; nothing was changed") }
      secret = first
    }
    guard secret.count > 0 else { throw Failure.usage("the \(name) is empty; choose another") }
    return secret
  }

  private var noTerminal: Failure {
    Failure.usage("there is no terminal to ask for the \(name); give \(option) FILE (- is standard input)")
  }

  /// The file's first line: what stands before its end, without the line break.
  private func read(_ file: String) throws -> SecretBytes {
    let descriptor = file == "-" ? Session.present.input : try FileSystem().openNamed(file)
    if file != "-", try descriptor.status().kind == .directory {
      throw Failure.usage("\(PathText.shown(Array(file.utf8))) is a folder, and no file with the \(name)")
    }
    var bytes = [UInt8](repeating: 0, count: Self.limit + 1)
    defer { bytes.withUnsafeMutableBytes { overwrite($0) } }
    // A byte at a time: what follows the line on standard input is not the secret's, and may be a file's content.
    var count = 0
    while count <= Self.limit {
      let got: Int
      do {
        got = try bytes.withUnsafeMutableBytes {
          try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[count..<(count + 1)]))
        }
      } catch let error as SystemError where error.isInterrupt {
        throw Failure.interruptedQuestion
      }
      if got == 0 || bytes[count] == 10 { break }
      count += 1
    }
    guard count <= Self.limit else { throw Failure.usage("the \(name) is longer than \(Self.limit) bytes") }
    if count > 0, bytes[count - 1] == 13 { count -= 1 }
    return bytes[..<count].withUnsafeBytes { SecretBytes(copying: $0) }
  }
}
