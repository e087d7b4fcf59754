import Foundation
import Testing

/// The Python package `rncryptor`, which makes and opens the same format without a line of ours.
enum IndependentRNCryptor {
  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().appendingPathComponent("../../..").standardizedFileURL
  private static let python =
    ProcessInfo.processInfo.environment["COFFER_PYTHON"]
    ?? root.appendingPathComponent(".build/python/bin/python3").path
  private static let script = root.appendingPathComponent("Tests/Fixtures/RNCryptor/independent.py").path

  static let missing: Comment =
    "the Python package rncryptor is not here; Scripts/install-dependencies installs it into .build/python"

  static let isInstalled: Bool = {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: python)
    process.arguments = ["-c", "import rncryptor"]
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }()

  /// - Parameters:
  ///   - action: `seal` or `open`.
  ///   - form: `password` or `keys`.
  static func run(
    _ action: String, _ form: String, _ secret: String, from source: String, to target: String, at desk: Desk
  ) throws -> RunningProgram.Outcome {
    try desk.run(python, [script, action, form, secret, source, target])
  }
}
