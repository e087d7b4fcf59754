import CofferCrypto
import CofferPolicy
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@testable import CofferContainer

@Suite("The registry of apps")
struct AppRegistryTests {
  private let settings = MemorySettings()
  private let folder: TemporaryFolder
  private let registry: AppRegistry
  private let key = SigningKey()

  init() throws {
    folder = try TemporaryFolder()
    registry = AppRegistry(settings: settings, containers: folder("containers"))
  }

  private func approval(_ id: String = "1", teamId: String = "ACME1", key: VerifyingKey?) -> AppApproval {
    AppApproval(
      id: id, name: "Acme", identity: AppIdentity(bundleId: "com.acme.editor", teamId: teamId), teamKey: key,
      tier: key == nil ? .filtered : .mediated, extensions: ["pdf"], actions: [.openIn])
  }

  /// Installs an app whose folder stays until that is done.
  @discardableResult
  private func install(
    _ app: TestApp, _ approvals: [AppApproval] = [], in registry: AppRegistry? = nil
  ) throws -> InstalledApp {
    try withExtendedLifetime(app.folder) {
      try (registry ?? self.registry).install(manifestAt: app.manifestPath, approvals: approvals)
    }
  }

  /// Every path below the containers' folder.
  private func containers() throws -> [String] {
    guard try FileSystem().status(of: folder("containers")) != nil else { return [] }
    return try FileManager.default.subpathsOfDirectory(atPath: folder("containers")).sorted()
  }

  @Test func `installs a signed app, with a container for its owner only`() throws {
    let app = try TestApp(key: key)
    let installed = try install(app)
    #expect(installed.verified == (try app.package.verified()))
    #expect(installed.manifestPath == app.manifestPath)
    #expect(try registry.apps() == [installed])
    #expect(try registry.app("com.acme.editor") == installed)
    let root = "Data/Application/\(installed.container.uuidString)"
    let made = ["", "/Documents", "/Documents/Inbox", "/Library", "/tmp"].map { root + $0 }
    #expect(try containers() == ["Data", "Data/Application"] + made)
    for path in try containers() {
      let status = try #require(try FileSystem().status(of: folder("containers/" + path)))
      #expect(status.kind == .directory && status.permissions == 0o700)
    }
    let container = registry.container(of: installed)
    #expect(container.inboxPath == folder("containers/" + root + "/Documents/Inbox"))
  }

  @Test func `knows apps in the order of their names, again after a restart`() throws {
    for name in ["com.b", "com.a", "com.c"] {
      _ = try install(TestApp(bundleId: name, key: key))
    }
    let later = AppRegistry(settings: settings, containers: folder("containers"))
    #expect(try later.apps().map(\.bundleId) == ["com.a", "com.b", "com.c"])
    #expect(Set(try later.apps().map(\.container)).count == 3)
  }

  @Test func `refuses what is not signed, altered, or does not fit, and leaves nothing`() throws {
    func refuses(_ app: TestApp, _ error: AppError) {
      #expect(throws: error) { try install(app) }
    }
    refuses(try TestApp(), .unsigned)
    let altered = try TestApp(key: key)
    try altered.alter("\"1.0\"", to: "\"1.1\"")
    refuses(altered, .notAuthentic)
    let forged = try TestApp(key: SigningKey())
    try forged.alter(try #require(forged.package.manifest().seal?.teamKey.text), to: key.verifyingKey.text)
    refuses(forged, .notAuthentic)
    let changed = try TestApp(key: key)
    try changed.write("else", to: "bin/editor")
    refuses(changed, .executableChanged)
    #expect(try containers() == [] && settings.names(prefix: "") == [])
  }

  @Test func `keeps the container when the same team brings a new version`() throws {
    let first = try install(TestApp(key: key))
    let second = try install(TestApp(version: "2.0", key: key))
    #expect(second.container == first.container && second.manifest.version == "2.0")
    #expect(try registry.apps() == [second])
  }

  @Test func `refuses another team under the same bundle id`() throws {
    let first = try install(TestApp(key: key))
    for other in [try TestApp(key: SigningKey()), try TestApp(teamId: "EVIL1", key: key)] {
      #expect(throws: AppError.installedFromOtherTeam) {
        try install(other)
      }
    }
    #expect(try registry.apps() == [first])
    try registry.remove("com.acme.editor")
    let next = try install(TestApp(key: SigningKey()))
    #expect(next.container != first.container)
  }

  @Test func `refuses what an approval pins to another team`() throws {
    let app = try TestApp(key: key)
    let other = SigningKey().verifyingKey
    let refused: [[AppApproval]] = [
      [approval(key: other)], [approval(teamId: "OTHER", key: key.verifyingKey)], [approval(teamId: "OTHER", key: nil)],
      // One that names no key does not outdo one that does.
      [approval("1", key: other), approval("2", key: nil)],
    ]
    for approvals in refused {
      let pinned = approvals.filter { $0.teamKey != nil }
      let rules = (pinned.isEmpty ? approvals : pinned).map(\.ruleID)
      #expect(throws: AppError.approvedForOtherTeam(rules: rules)) {
        try install(app, approvals)
      }
    }
    #expect(try containers() == [] && settings.names(prefix: "") == [])
    var elsewhere = approval(key: other)
    elsewhere.bundleId = "com.other"
    let accepted: [[AppApproval]] = [
      [], [elsewhere], [approval(key: key.verifyingKey)], [approval(key: nil)],
      [approval("1", key: other), approval("2", key: key.verifyingKey)],
    ]
    for approvals in accepted {
      #expect(throws: Never.self) { try install(app, approvals) }
    }
  }

  @Test func `notices when an installed app changes`() throws {
    let app = try TestApp(key: key)
    let installed = try install(app)
    #expect(throws: Never.self) { try installed.verifyUnchanged() }
    try app.write("else", to: "bin/editor")
    #expect(throws: AppError.executableChanged) { try installed.verifyUnchanged() }
    // Signed again by its team, it is still not what was installed.
    try app.package.sign(with: key)
    #expect(throws: AppError.executableChanged) { try installed.verifyUnchanged() }
    let again = try install(app)
    #expect(throws: Never.self) { try again.verifyUnchanged() }
    try FileManager.default.removeItem(atPath: app.manifestPath)
    #expect(throws: AppError.self) { try again.verifyUnchanged() }
  }

  @Test func `records an absolute path`() throws {
    let app = try TestApp(key: key)
    let here = FileManager.default.currentDirectoryPath
    let up = String(repeating: "../", count: here.split(separator: "/").count)
    let installed = try registry.install(manifestAt: up + app.manifestPath.dropFirst(), approvals: [])
    #expect(installed.manifestPath.hasPrefix("/"))
    #expect(throws: Never.self) { try installed.verifyUnchanged() }
  }

  @Test func `removes an app, its container and all in it, and follows no link`() throws {
    let installed = try install(TestApp(key: key))
    let other = try install(TestApp(bundleId: "com.other", key: key))
    let outside = folder("outside")
    let manager = FileManager.default
    try manager.createDirectory(atPath: outside, withIntermediateDirectories: false)
    try Data([1]).write(to: URL(filePath: outside + "/kept"))
    let path = registry.container(of: installed).path
    try manager.createSymbolicLink(atPath: path + "/tmp/link", withDestinationPath: outside)
    try manager.createDirectory(atPath: path + "/Library/a/b", withIntermediateDirectories: true)
    try Data([1]).write(to: URL(filePath: path + "/Library/a/b/c"))
    try manager.setAttributes([.posixPermissions: 0o500], ofItemAtPath: path + "/Library/a/b")
    try registry.remove("com.acme.editor")
    #expect(try FileSystem().status(of: path) == nil)
    #expect(try manager.contentsOfDirectory(atPath: outside) == ["kept"])
    #expect(try registry.apps() == [other])
    #expect(try FileSystem().status(of: registry.container(of: other).inboxPath) != nil)
    #expect(throws: AppError.notInstalled) { try registry.app("com.acme.editor") }
    #expect(throws: AppError.notInstalled) { try registry.remove("com.acme.editor") }
  }

  @Test func `removes an app whose container is gone`() throws {
    let installed = try install(TestApp(key: key))
    try FileManager.default.removeItem(atPath: registry.container(of: installed).path)
    try registry.remove("com.acme.editor")
    #expect(try registry.apps() == [])
  }

  @Test func `leaves no container when the app cannot be recorded`() throws {
    settings.refuseChanges()
    #expect(throws: MemorySettings.Refusal.self) {
      try install(TestApp(key: key))
    }
    #expect(try containers() == ["Data", "Data/Application"])
  }

  @Test(arguments: 0..<5) func `leaves no container when it cannot be made whole`(count: Int) throws {
    let fault = FailingOnce(.makeDirectory, after: count)
    let registry = AppRegistry(
      settings: settings, containers: folder("containers"), files: FileSystem(faults: fault))
    #expect(throws: AppError.system(SystemError(code: 28, call: "makeDirectory"))) {
      try install(TestApp(key: key), in: registry)
    }
    #expect(try containers().allSatisfy { ["Data", "Data/Application"].contains($0) })
    #expect(settings.names(prefix: "") == [])
    #expect(fault.didFail)
  }

  @Test func `trusts no record beyond what it holds`() throws {
    let app = try install(TestApp(key: key))
    let record = try #require(settings.value("app.com.acme.editor"))
    var bad = (0..<record.count).map { Array(record[..<$0]) } + [record + [0]]
    bad.append([2] + record.dropFirst())
    // A manifest that its team did not sign.
    let forged = try TestApp(key: SigningKey())
    try forged.alter("\"1.0\"", to: "\"1.1\"")
    let json = try forged.package.manifest().json
    bad.append(Array(record[..<17]) + UInt32(json.count).bigEndianBytes + json + [0, 0, 0, 0])
    for bytes in bad {
      #expect(throws: AppError.damagedRecord) { try InstalledApp(record: bytes) }
    }
    #expect(try InstalledApp(record: record) == app)
    // One app's record under another's name.
    try settings.set("app.com.other", record)
    #expect(throws: AppError.damagedRecord) { try registry.app("com.other") }
    #expect(throws: AppError.damagedRecord) { try registry.apps() }
    try settings.set("app.com.other", [0])
    try registry.remove("com.other")
    #expect(try registry.apps() == [app])
  }
}
