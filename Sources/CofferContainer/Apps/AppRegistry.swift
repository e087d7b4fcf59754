public import CofferPolicy
public import CofferSystem
internal import Foundation

/// The apps that are known on this device. What it knows lies sealed in the vault, so that it cannot be forged on disk.
public struct AppRegistry: Sendable {
  private let settings: any SealedSettings
  private let containers: String
  private let files: FileSystem
  private static let prefix = "app."

  /// - Parameters:
  ///   - settings: where the apps are recorded.
  ///   - containers: the folder of the apps' containers; made when the first app is installed.
  public init(settings: any SealedSettings, containers: String, files: FileSystem = FileSystem()) {
    self.settings = settings
    self.containers = containers
    self.files = files
  }

  /// The installed apps, by bundle id.
  public func apps() throws -> [InstalledApp] {
    try settings.names(prefix: Self.prefix).sorted().compactMap { try app(inRecord: $0) }
  }

  /// The installed app with this bundle id. Throws `AppError.notInstalled` when there is none.
  public func app(_ bundleId: String) throws -> InstalledApp {
    guard let app = try app(inRecord: Self.prefix + bundleId) else { throw AppError.notInstalled }
    return app
  }

  /// Installs the app whose manifest is at `path`, or a new version of one that is installed, which keeps its container.
  ///
  /// - Parameter approvals: those of the current policy; none where there is no policy.
  /// - Throws: `AppError`: an unsigned, altered or misfitting app, one of another team than the one installed or
  ///   approved under its bundle id; or what the settings throw. Nothing is left behind then.
  public func install(manifestAt path: String, approvals: [AppApproval]) throws -> InstalledApp {
    let verified = try AppPackage(manifestAt: path, files: files).verified()
    try Self.check(verified, against: approvals)
    let name = Self.prefix + verified.identity.bundleId
    let present = try app(inRecord: name)
    if let present {
      guard present.verified.teamKey == verified.teamKey, present.verified.identity == verified.identity else {
        throw AppError.installedFromOtherTeam
      }
    }
    let app = InstalledApp(
      verified: verified, container: present?.container ?? UUID(), manifestPath: URL(filePath: path).path)
    let container = container(of: app)
    do {
      try container.create()
      try settings.set(name, app.record)
    } catch {
      if present == nil { try? container.remove() }
      throw error
    }
    return app
  }

  /// Removes an app, its container and everything in it; the app itself, outside, stays.
  ///
  /// The container goes first: after an interruption the app is still known, and removing it again completes the work.
  public func remove(_ bundleId: String) throws {
    let name = Self.prefix + bundleId
    guard let record = try settings.value(name) else { throw AppError.notInstalled }
    // A damaged record must not make an app stay for ever; which container was its own is then not known.
    if let app = try? InstalledApp(record: record) { try container(of: app).remove() }
    try settings.set(name, nil)
  }

  public func container(of app: InstalledApp) -> AppContainer {
    AppContainer(id: app.container, containers: containers, files: files)
  }

  private func app(inRecord name: String) throws -> InstalledApp? {
    guard let record = try settings.value(name) else { return nil }
    let app = try InstalledApp(record: record)
    guard Self.prefix + app.bundleId == name else { throw AppError.damagedRecord }
    return app
  }

  /// An approval that names this bundle id says whose it is. One that pins a key is not outdone by one that does not.
  private static func check(_ app: VerifiedManifest, against approvals: [AppApproval]) throws(AppError) {
    let named = approvals.filter { $0.bundleId == app.identity.bundleId }
    let pinned = named.filter { $0.teamKey != nil }
    let binding = pinned.isEmpty ? named : pinned
    let fits = binding.contains { approval in
      approval.teamId == app.identity.teamId && (approval.teamKey == nil || approval.teamKey == app.teamKey)
    }
    guard binding.isEmpty || fits else { throw .approvedForOtherTeam(rules: binding.map(\.ruleID)) }
  }
}
