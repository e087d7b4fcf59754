import CofferContainer
import CofferCrypto
import CofferPolicy
import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
import Testing

/// Sealed settings in memory. They can be told to refuse the next change.
final class MemorySettings: SealedSettings {
  struct Refusal: Error {}

  private let values = Mutex<[String: [UInt8]]>([:])
  private let refuses = Mutex(false)

  func value(_ name: String) -> [UInt8]? { values.withLock { $0[name] } }
  func set(_ name: String, _ value: [UInt8]?) throws {
    if refuses.withLock({ $0 }) { throw Refusal() }
    values.withLock { $0[name] = value }
  }
  func names(prefix: String) -> [String] { values.withLock { $0.keys.filter { $0.hasPrefix(prefix) } } }
  func refuseChanges() { refuses.withLock { $0 = true } }
}

/// An app in a folder of its own, and changes to its files.
struct TestApp {
  static let manifestName = "app.json"

  let folder: TemporaryFolder
  var manifestPath: String { folder(Self.manifestName) }
  var package: AppPackage { get throws { try AppPackage(manifestAt: manifestPath) } }

  /// Signed by `key`; not signed without one.
  init(
    bundleId: String = "com.acme.editor", teamId: String = "ACME1", version: String = "1.0",
    executable: String = "bin/editor", key: SigningKey? = nil
  ) throws {
    folder = try TemporaryFolder()
    let manifest = try AppManifest(
      identity: AppIdentity(bundleId: bundleId, teamId: teamId), name: "Acme Editor", version: version,
      executable: executable, documentTypes: ["docx", "pdf"])
    try FileManager.default.createDirectory(atPath: folder("bin"), withIntermediateDirectories: false)
    try write("#!/bin/sh\nexit 0\n", to: "bin/editor")
    try write(String(decoding: manifest.json, as: UTF8.self), to: Self.manifestName)
    if let key { try package.sign(with: key) }
  }

  func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: URL(filePath: folder(name)))
  }

  func text(_ name: String = TestApp.manifestName) throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: folder(name))), as: UTF8.self)
  }

  /// Replaces a text in the manifest, which must be there.
  func alter(_ old: String, to new: String) throws {
    let before = try text()
    try #require(before.contains(old))
    try write(before.replacingOccurrences(of: old, with: new), to: Self.manifestName)
  }
}

/// Makes the calls of one kind fail, from the nth on, once.
final class FailingOnce: FaultPlan {
  private let call: SystemCall
  private let left: Mutex<Int>
  private let error: SystemError

  init(_ call: SystemCall, after count: Int, code: CInt = 28) {
    self.call = call
    left = Mutex(count)
    error = SystemError(code: code, call: call.rawValue)
  }

  var didFail: Bool { left.withLock { $0 < 0 } }

  func willCall(_ call: SystemCall) throws(SystemError) {
    guard call == self.call else { return }
    let fails = left.withLock { left in
      left -= 1
      return left == -1
    }
    if fails { throw error }
  }
}
