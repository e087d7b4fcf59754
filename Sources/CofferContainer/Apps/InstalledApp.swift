internal import CofferPolicy
internal import CofferSystem
public import Foundation

/// An app on this device: its verified manifest, and the container that its files are delivered to.
public struct InstalledApp: Hashable, Sendable {
  public let verified: VerifiedManifest
  /// The name of its container's folder.
  public let container: UUID
  /// The manifest's absolute path when the app was installed.
  public let manifestPath: String

  init(verified: VerifiedManifest, container: UUID, manifestPath: String) {
    self.verified = verified
    self.container = container
    self.manifestPath = manifestPath
  }

  public var manifest: AppManifest { verified.manifest }
  public var bundleId: String { manifest.identity.bundleId }

  /// Verifies that the app is still what was installed: manifest and executable, as they lie there now.
  ///
  /// - Throws: `AppError.executableChanged` when either is another, or the error of looking at it.
  public func verifyUnchanged() throws(AppError) {
    guard try AppPackage(manifestAt: manifestPath).verified() == verified else { throw .executableChanged }
  }
}

/// The record of an app in the sealed settings: version (1 byte, 1), container (16 bytes), then the manifest and its
/// path, each behind its length in 4 bytes.
extension InstalledApp {
  private static let recordVersion: UInt8 = 1
  private static let pathLimit = 4096

  var record: [UInt8] {
    var writer = ByteWriter()
    writer.write(Self.recordVersion)
    writer.write(fixed: withUnsafeBytes(of: container.uuid) { Array($0) })
    writer.write(counted: manifest.json)
    writer.write(counted: Array(manifestPath.utf8))
    return writer.bytes
  }

  /// The manifest's signature is verified again: a record is trusted no further than what it holds.
  init(record: [UInt8]) throws(AppError) {
    do {
      var reader = ByteReader(record)
      guard try reader.read(UInt8.self) == Self.recordVersion else { throw AppError.damagedRecord }
      let container = try reader.read(fixed: 16).withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }
      let manifest = try AppManifest(json: try reader.read(countedUpTo: AppManifest.byteLimit)).verified()
      let path = String(decoding: try reader.read(countedUpTo: Self.pathLimit), as: UTF8.self)
      try reader.finish()
      self.init(verified: manifest, container: UUID(uuid: container), manifestPath: path)
    } catch {
      throw .damagedRecord
    }
  }
}
