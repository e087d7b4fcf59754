internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Foundation

/// `FOLDER/source` stored by one subject, and taken out again to `FOLDER/result`: `plain`, `coffer` or `rncryptor`.
///
/// One subject in a process of its own, so that its peak of memory is nobody else's. The source is removed when it is
/// stored, and the stored form when it is taken out: never more than two files are there. Everyone syncs what it wrote.
struct FileSizes {
  private let subject: String
  private let folder: String
  private let size: Int
  private let baseline: Int?
  private let files = FileSystem()

  static func measure(_ options: inout Options) throws {
    let subject = try options.text("subject")
    switch subject {
    case "plain": try Self(subject, options).measure(PlainStore(options))
    case "rncryptor": try Self(subject, options).measure(RNCryptorStore(options))
    case "coffer":
      let place = try BenchVault(options)
      // Made, closed and opened again: what making it took is not the baseline.
      try place.create(costExponent: BenchVault.costExponent).close()
      var vault: Vault?
      let time = try seconds { vault = try place.open() }
      guard let vault else { return }
      let sizes = try Self(subject, options)
      try sizes.line("open", time)
      try sizes.measure(VaultStore(vault))
    default: throw Options.Invalid(message: "--subject is plain, coffer or rncryptor")
    }
  }

  /// What is resident now is the baseline.
  private init(_ subject: String, _ options: Options) throws {
    self.subject = subject
    folder = try options.text("folder")
    guard let status = try files.status(of: folder + "/source") else {
      throw Options.Invalid(message: "there is no file \(folder)/source")
    }
    size = Int(status.byteCount)
    baseline = ResidentMemory.reset()
  }

  private func measure(_ store: some FileStore) throws {
    let stored = try seconds { try store.store(files.open(folder + "/source", .readOnly), size) }
    try line("in", stored, memory: ResidentMemory.peak(above: baseline))
    _ = try files.unlink(folder + "/source")
    _ = ResidentMemory.reset()
    let taken = try seconds {
      let result = try files.open(folder + "/result", [.writeOnly, .createNew])
      try store.takeOut(to: result, size)
      try result.syncData()
    }
    try line("out", taken, memory: ResidentMemory.peak(above: baseline))
    try store.remove()
  }

  private func line(_ measurement: String, _ time: Double, memory: Int? = nil) throws {
    try Line(
      measurement: measurement, subject: subject, parameters: ["size": size], seconds: time, bytes: size, memory: memory
    ).print()
  }
}

/// Bytes that the plain copy and RNCryptor read and write in one call: as many as the vault does.
private let callByteCount = 256 << 10

/// Where one file is kept.
private protocol FileStore {
  /// Reads the whole source, and syncs what it wrote.
  func store(_ source: OwnedDescriptor, _ size: Int) throws
  func takeOut(to result: OwnedDescriptor, _ size: Int) throws
  func remove() throws
}

/// A copy, nothing encrypted.
private struct PlainStore: FileStore {
  private let path: String
  private let buffer = Buffer(callByteCount)

  init(_ options: Options) throws { path = try options.text("folder") + "/stored" }

  func store(_ source: OwnedDescriptor, _ size: Int) throws {
    let stored = try FileSystem().open(path, [.writeOnly, .createNew])
    try copy(source, to: stored)
    try stored.syncData()
  }

  func takeOut(to result: OwnedDescriptor, _ size: Int) throws {
    try copy(FileSystem().open(path, .readOnly), to: result)
  }

  func remove() throws { _ = try FileSystem().unlink(path) }

  private func copy(_ source: OwnedDescriptor, to target: OwnedDescriptor) throws {
    while true {
      let count = try source.readFully(into: buffer.bytes)
      if count == 0 { return }
      try target.writeAll(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
    }
  }
}

/// RNCryptor's format, version 3, with a password, as a stream on one thread: the ciphers are swift-crypto's.
private struct RNCryptorStore: FileStore {
  private let path: String
  private let secret = RNCryptorSecret.password(BenchVault.passcode)
  /// With room for the padding behind the last portion.
  private let buffer = Buffer(callByteCount + RNCryptorSealer.paddingByteCount)
  private var portion: UnsafeMutableRawBufferPointer { .init(rebasing: buffer.bytes[..<callByteCount]) }

  init(_ options: Options) throws { path = try options.text("folder") + "/stored" }

  func store(_ source: OwnedDescriptor, _ size: Int) throws {
    let stored = try FileSystem().open(path, [.writeOnly, .createNew])
    var sealer = try RNCryptorSealer(secret: secret)
    try stored.writeAll(sealer.header)
    var done = 0
    var isLast = false
    while !isLast {
      let count = try source.readFully(into: portion)
      done += count
      isLast = done == size || count == 0
      let sealed = sealer.seal(buffer.bytes, count: count, isLast: isLast)
      try stored.writeAll(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<sealed]))
    }
    try stored.writeAll(sealer.tag())
    try stored.syncData()
  }

  func takeOut(to result: OwnedDescriptor, _ size: Int) throws {
    let stored = try FileSystem().open(path, .readOnly)
    let opener = try RNCryptorOpener(secret: secret)
    while true {
      let next = try opener.next(into: portion) { try stored.readFully(into: $0) }
      if next.byteCount == 0 { return }
      let count = try next.open(buffer.bytes)
      try result.writeAll(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
    }
  }

  func remove() throws { _ = try FileSystem().unlink(path) }
}

/// An open vault.
private struct VaultStore: FileStore {
  private let vault: Vault
  private let path: VaultPath

  init(_ vault: Vault) throws {
    self.vault = vault
    path = try VaultPath("stored")
  }

  func store(_ source: OwnedDescriptor, _ size: Int) throws {
    try vault.importFile(
      ImportSource(descriptor: source, byteCount: UInt64(size), permissions: 0o600, modified: nil), to: path)
    try vault.commit()
  }

  func takeOut(to result: OwnedDescriptor, _ size: Int) throws {
    try vault.snapshot(of: path).export(to: result, isSeekable: true)
  }

  func remove() throws {
    try vault.remove(path)
    try vault.commit()
    try vault.close()
  }
}
