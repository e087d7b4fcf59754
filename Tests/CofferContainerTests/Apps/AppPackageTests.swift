import CofferContainer
import CofferCrypto
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite("An app in a folder")
struct AppPackageTests {
  @Test func `is signed in place and verified`() throws {
    let key = SigningKey()
    let app = try TestApp()
    #expect(throws: AppError.unsigned) { try app.package.verified() }
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: app.manifestPath)
    let signed = try app.package.sign(with: key)
    #expect(try app.package.manifest() == signed)
    let verified = try app.package.verified()
    #expect(verified.teamKey == key.verifyingKey)
    #expect(verified.executableDigest == Digest.sha256(Array(try app.text("bin/editor").utf8)))
    #expect(try FileSystem().status(of: app.manifestPath)?.permissions == 0o640)
    #expect(try FileManager.default.contentsOfDirectory(atPath: app.folder.path).sorted() == ["app.json", "bin"])
  }

  @Test func `is refused when its executable is another`() throws {
    let app = try TestApp(key: SigningKey())
    #expect(throws: Never.self) { try app.package.verified() }
    try app.write("#!/bin/sh\nexit 1\n", to: "bin/editor")
    #expect(throws: AppError.executableChanged) { try app.package.verified() }
    try app.write("", to: "bin/editor")
    #expect(throws: AppError.executableChanged) { try app.package.verified() }
  }

  @Test func `digests a large executable`() throws {
    let app = try TestApp()
    let text = String(repeating: "0123456789", count: 100_000)
    try app.write(text, to: "bin/editor")
    try app.package.sign(with: SigningKey())
    #expect(try app.package.verified().executableDigest == Digest.sha256(Array(text.utf8)))
  }

  @Test func `is refused without an executable of its own`() throws {
    let app = try TestApp(key: SigningKey())
    let outside = try TemporaryFolder()
    let manager = FileManager.default
    let path = app.folder("bin/editor")
    try manager.moveItem(atPath: path, toPath: outside("editor"))
    #expect(throws: AppError.noExecutable) { try app.package.verified() }
    // A link, even to the same bytes, and even within the folder.
    try manager.createSymbolicLink(atPath: path, withDestinationPath: outside("editor"))
    #expect(throws: AppError.noExecutable) { try app.package.verified() }
    try manager.removeItem(atPath: path)
    try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
    #expect(throws: AppError.noExecutable) { try app.package.verified() }
    try manager.removeItem(atPath: app.folder("bin"))
    try manager.createSymbolicLink(atPath: app.folder("bin"), withDestinationPath: outside.path)
    #expect(throws: AppError.noExecutable) { try app.package.verified() }
    #expect(throws: AppError.noExecutable) { try app.package.sign(with: SigningKey()) }
    // What it takes to pass.
    try manager.removeItem(atPath: app.folder("bin"))
    try manager.createDirectory(atPath: app.folder("bin"), withIntermediateDirectories: false)
    try manager.moveItem(atPath: outside("editor"), toPath: path)
    #expect(throws: Never.self) { try app.package.verified() }
  }

  @Test func `is refused when the manifest cannot be read`() throws {
    let app = try TestApp()
    #expect(throws: AppError.system(SystemError(code: 2, call: "open"))) {
      try AppPackage(manifestAt: app.folder("none.json")).manifest()
    }
    #expect(throws: AppError.system(SystemError(code: 2, call: "open"))) {
      try AppPackage(manifestAt: app.folder("none/app.json"))
    }
    for path in ["", "/", app.folder.path + "/", "a\u{0}b"] {
      #expect(throws: AppError.invalidFileName) { try AppPackage(manifestAt: path) }
    }
    try app.write(String(repeating: " ", count: AppManifest.byteLimit + 1), to: TestApp.manifestName)
    #expect(throws: AppError.self) { try app.package.manifest() }
  }

  @Test(arguments: [SystemCall.write, .sync, .rename]) func `keeps its old manifest when signing fails`(
    call: SystemCall
  ) throws {
    let app = try TestApp()
    let before = try app.text()
    let fault = FailingOnce(call, after: 0)
    #expect(throws: AppError.system(SystemError(code: 28, call: call.rawValue))) {
      try AppPackage(manifestAt: app.manifestPath, files: FileSystem(faults: fault)).sign(with: SigningKey())
    }
    #expect(fault.didFail)
    #expect(try app.text() == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: app.folder.path).sorted() == ["app.json", "bin"])
  }
}
