public import CofferCrypto
public import CofferSystem

/// An app as it lies in a folder: a manifest, and the executable beside it.
public struct AppPackage: Sendable {
  /// The folder, opened once: both files are looked for in it, wherever its path leads later.
  private let folder: OwnedDescriptor
  private let manifestName: String
  private let files: FileSystem

  /// Opens the folder of the manifest at `path`.
  public init(manifestAt path: String, files: FileSystem = FileSystem()) throws(AppError) {
    let parts = path.split(separator: "/", omittingEmptySubsequences: true)
    guard let name = parts.last, !path.hasSuffix("/"), !path.utf8.contains(0) else { throw .invalidFileName }
    let parent = parts.dropLast().joined(separator: "/")
    let folder = path.hasPrefix("/") ? "/" + parent : (parent.isEmpty ? "." : parent)
    self.folder = try AppError.catching { () throws(SystemError) in try files.open(folder, .directory) }
    manifestName = String(name)
    self.files = files
  }

  /// The manifest, signed or not.
  public func manifest() throws(AppError) -> AppManifest {
    let bytes = try AppError.catching { () throws(SystemError) in
      // Not waiting: a fifo in its place would hold everything up.
      let file = try files.open(manifestName, [.readOnly, .nonBlocking], in: folder)
      return try file.contents(limit: AppManifest.byteLimit + 1)
    }
    return try AppManifest(json: bytes)
  }

  /// The manifest, once its signature and its executable's digest are verified.
  public func verified() throws(AppError) -> VerifiedManifest {
    let manifest = try manifest().verified()
    guard try executableDigest(manifest.manifest) == manifest.executableDigest else { throw .executableChanged }
    return manifest
  }

  /// Signs the manifest in place with a team's key, for the executable as it is now.
  @discardableResult
  public func sign(with key: SigningKey) throws(AppError) -> AppManifest {
    let manifest = try manifest()
    let signed = try manifest.signed(by: key, executableDigest: try executableDigest(manifest))
    try AppError.catching { () throws(SystemError) in
      let permissions = try files.status(of: manifestName, in: folder)?.permissions ?? 0o644
      try files.replaceDurably(manifestName, in: folder, permissions: permissions & 0o777, with: signed.json)
    }
    return signed
  }

  /// SHA-256 of the executable. No part of its path may be a symbolic link: it stays beside the manifest.
  private func executableDigest(_ manifest: AppManifest) throws(AppError) -> [UInt8] {
    let file: OwnedDescriptor
    do {
      var names = manifest.executable.split(separator: "/").map(String.init)
      let last = names.removeLast()
      var directory = folder
      for name in names { directory = try files.open(name, [.directory, .noFollow], in: directory) }
      file = try files.open(last, [.readOnly, .noFollow, .nonBlocking], in: directory)
      guard try file.status().kind == .file else { throw AppError.noExecutable }
    } catch {
      throw .noExecutable
    }
    return try AppError.catching { () throws(SystemError) in try digest(of: file) }
  }

  private func digest(of file: OwnedDescriptor) throws(SystemError) -> [UInt8] {
    var state = StreamingDigest()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try file.read(into: buffer)
      if count == 0 { return state.finalize() }
      state.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }
}
