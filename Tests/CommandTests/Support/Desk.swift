import CofferTestSupport
import Foundation
import Testing

/// A folder to work in and the programs that are run there: one vault, one key store, one folder of app containers.
///
/// Nothing of the person who runs the tests takes part, and nothing is written outside the folder. What each program
/// wrote to standard error stays in `logs`.
final class Desk {
  static let passcode = "correct horse battery staple"

  let folder: TemporaryFolder
  var environment: [String: String]
  private var runCount = 0

  init() throws {
    folder = try TemporaryFolder()
    for name in ["home", "tmp", "run", "logs", "out"] { try Self.makeFolder(folder(name)) }
    environment = [
      "PATH": "/usr/bin:/bin",
      "HOME": folder("home"),
      "TMPDIR": folder("tmp"),
      "XDG_RUNTIME_DIR": folder("run"),
      "COFFER_VAULT": folder("vault"),
      "COFFER_KEY_STORE": folder("keys"),
      "COFFER_CONTAINERS": folder("containers"),
    ]
    try write("passcode", Self.passcode + "\n")
  }

  var root: String { folder.path }

  /// The path of `name` in the folder.
  func path(_ name: String) -> String { folder(name) }

  // MARK: Files

  func write(_ name: String, _ text: String) throws { try write(name, Array(text.utf8)) }

  func write(_ name: String, _ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: folder(name)))
  }

  func read(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: name.hasPrefix("/") ? name : folder(name))))
  }

  func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: folder(name)) }

  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: folder(name)) }

  func copy(_ name: String, to copy: String) throws {
    try FileManager.default.copyItem(atPath: folder(name), toPath: folder(copy))
  }

  /// Every path below the folders: files with their size, folders with a slash. A vault's lock names the last process that
  /// held it, in as many digits as its number has.
  func listing(_ names: String...) -> [String] { listing(names) }

  func listing(_ names: [String]) -> [String] {
    names.flatMap { name in
      (FileManager.default.enumerator(atPath: folder(name))?.allObjects as? [String] ?? []).map { path in
        let attributes = try? FileManager.default.attributesOfItem(atPath: folder(name) + "/" + path)
        let isFolder = attributes?[.type] as? FileAttributeType == .typeDirectory
        if isFolder { return "\(name)/\(path)/" }
        return path == "lock" ? "\(name)/lock" : "\(name)/\(path) \(attributes?[.size] as? Int ?? -1)"
      }
    }.sorted()
  }

  /// The objects of the vault with their sizes; empty folders for objects may come and stay.
  func objects() -> [String] {
    let vault = environment["COFFER_VAULT"]?.dropFirst(root.count + 1) ?? "vault"
    return listing("\(vault)/objects").filter { !$0.hasSuffix("/") }
  }

  private static func makeFolder(_ path: String) throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  // MARK: Programs

  /// Starts a program in the folder.
  func start(_ program: String, _ arguments: [String]) throws -> RunningProgram {
    runCount += 1
    return try RunningProgram(
      program, arguments, in: folder.path, environment: environment, errors: folder("logs/\(runCount).stderr"))
  }

  /// Runs a program to its end.
  func run(_ program: String, _ arguments: [String], input: [UInt8] = []) throws -> RunningProgram.Outcome {
    let program = try start(program, arguments)
    program.send(input)
    return program.wait()
  }

  /// Starts a line of bash, which finds the programs by their names.
  func startShell(_ line: String) throws -> RunningProgram {
    let before = environment["PATH"]
    defer { environment["PATH"] = before }
    environment["PATH"] = "\(RunningProgram.folder.path):/usr/bin:/bin"
    return try start("/bin/bash", ["-c", line])
  }

  /// Runs a line of bash to its end.
  func shell(_ line: String, input: [UInt8] = []) throws -> RunningProgram.Outcome {
    let program = try startShell(line)
    program.send(input)
    return program.wait()
  }

  /// Runs `coffer` with the passcode.
  func coffer(_ arguments: String..., input: [UInt8] = []) throws -> RunningProgram.Outcome {
    try run("coffer", arguments + ["--passcode-file", "passcode"], input: input)
  }

  /// Runs `coffer` with the passcode; it must do as it is told.
  @discardableResult
  func done(
    _ arguments: String..., input: [UInt8] = [], sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RunningProgram.Outcome {
    let outcome = try run("coffer", arguments + ["--passcode-file", "passcode"], input: input)
    #expect(outcome.code == 0, "\(arguments): \(outcome.errors)", sourceLocation: sourceLocation)
    return outcome
  }

  /// Runs `coffer` with the passcode; it must end with `code` and say why, print nothing, and leave `unchanged` as they
  /// are.
  @discardableResult
  func refused(
    _ code: Int32, _ says: String..., running arguments: [String], input: [UInt8] = [], unchanged: [String] = [],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RunningProgram.Outcome {
    let before = listing(unchanged)
    let outcome = try run("coffer", arguments + ["--passcode-file", "passcode"], input: input)
    expect(outcome, code: code, says: says, sourceLocation: sourceLocation)
    #expect(listing(unchanged) == before, "\(arguments)", sourceLocation: sourceLocation)
    return outcome
  }
}

/// Holds a refusal to what every refusal is: the code, words that a person can act on, and no result.
func expect(
  _ outcome: RunningProgram.Outcome, code: Int32, says: [String], sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(outcome.code == code, "\(outcome.errors)", sourceLocation: sourceLocation)
  #expect(outcome.bytes.isEmpty, sourceLocation: sourceLocation)
  #expect(!outcome.errors.isEmpty && outcome.errors.hasSuffix("\n"), sourceLocation: sourceLocation)
  #expect(!outcome.errors.contains("internal error"), "\(outcome.errors)", sourceLocation: sourceLocation)
  #expect(!outcome.errors.contains("Fatal error"), "\(outcome.errors)", sourceLocation: sourceLocation)
  for text in says where !text.isEmpty {
    #expect(outcome.errors.contains(text), "\(outcome.errors)", sourceLocation: sourceLocation)
  }
}

/// Noise that is the same in each run.
func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var state = seed
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count + 8)
  while bytes.count < count {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    withUnsafeBytes(of: state ^ (state >> 29)) { bytes.append(contentsOf: $0) }
  }
  return Array(bytes[..<count])
}

/// The files that real programs wrote.
enum Documents {
  private static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().appendingPathComponent("../../Fixtures/Documents").standardizedFileURL

  static func bytes(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: folder.appendingPathComponent(name)))
  }
}
