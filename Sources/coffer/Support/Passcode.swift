internal import CofferSystem
internal import Foundation

/// Where a passcode comes from: a file, standard input, or a prompt on the terminal.
enum Passcode {
  private static let limit = 1024

  static func existing(_ file: String?) throws -> SecretBytes {
    if let file { return try read(file) }
    guard let passcode = try Terminal.readSecret(prompt: "Passcode: ") else { throw noTerminal }
    return passcode
  }

  /// A new passcode, asked for twice.
  static func new(_ file: String?) throws -> SecretBytes {
    let passcode: SecretBytes
    if let file {
      passcode = try read(file)
    } else {
      guard let first = try Terminal.readSecret(prompt: "New passcode: ") else { throw noTerminal }
      guard let second = try Terminal.readSecret(prompt: "The same again: ") else { throw noTerminal }
      let same = first.withUnsafeBytes { left in second.withUnsafeBytes { right in left.elementsEqual(right) } }
      guard same else { throw Failure.usage("the two passcodes differ; nothing was made") }
      passcode = first
    }
    guard passcode.count > 0 else { throw Failure.usage("the passcode is empty; choose another") }
    return passcode
  }

  private static var noTerminal: Failure {
    Failure.usage("there is no terminal to ask for the passcode; give --passcode-file FILE (- is standard input)")
  }

  /// The file's first line: what stands before its end, without the line break.
  private static func read(_ file: String) throws -> SecretBytes {
    let descriptor = file == "-" ? Session.present.input : try FileSystem().openNamed(file)
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    defer { bytes.withUnsafeMutableBytes { overwrite($0) } }
    // A byte at a time: what follows the line on standard input is not the passcode's, and may be a file's content.
    var count = 0
    while count <= limit {
      let got = try bytes.withUnsafeMutableBytes {
        try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[count..<(count + 1)]))
      }
      if got == 0 || bytes[count] == 10 { break }
      count += 1
    }
    guard count <= limit else { throw Failure.usage("the passcode is longer than \(limit) bytes") }
    if count > 0, bytes[count - 1] == 13 { count -= 1 }
    return bytes[..<count].withUnsafeBytes { SecretBytes(copying: $0) }
  }
}
