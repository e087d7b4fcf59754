import Foundation
import Testing

/// A team that makes apps: its key, and manifests that it signed.
struct Team {
  let name: String
  /// The public key, as `coffer app keygen` prints it.
  let key: String
  private let desk: Desk

  init(_ name: String, at desk: Desk) throws {
    self.name = name
    self.desk = desk
    try FileManager.default.createDirectory(
      atPath: desk.path("apps-\(name)"), withIntermediateDirectories: false, attributes: nil)
    let made = try desk.run("coffer", ["app", "keygen", "apps-\(name)/team.key"])
    try #require(made.code == 0, "\(made.errors)")
    key = made.value
  }

  /// Makes a tiny app, signs its manifest, and returns the manifest's path.
  func sign(_ app: String, bundleId: String, teamId: String) throws -> String {
    let manifest = "apps-\(name)/\(app).json"
    try desk.write(executable(of: app), "#!/bin/sh\nwc -c \"$1\"\n")
    try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: desk.path(executable(of: app)))
    let members: [String: Any] = [
      "bundleId": bundleId, "teamId": teamId, "name": "App \(app)", "version": "1.0", "executable": app,
      "documentTypes": ["pdf", "docx"],
    ]
    try desk.write(manifest, Array(try JSONSerialization.data(withJSONObject: members)))
    let signed = try desk.run("coffer", ["app", "sign", manifest, "--key", "apps-\(name)/team.key"])
    try #require(signed.code == 0, "\(signed.errors)")
    return manifest
  }

  func executable(of app: String) -> String { "apps-\(name)/\(app)" }
}
