public import CofferFiles
internal import CofferSystem

extension Vault {
  /// Writes a copy of the vault to a new or empty folder: the state of one commit, while the vault stays in use.
  ///
  /// The copy opens with this device's key store and a passcode of this vault. Everything in it is durable when this
  /// returns; where it fails or is cancelled, what it made is taken away again, and what was never finished has no
  /// `coffer.json` and is no vault.
  ///
  /// Throws `folderNotEmpty`, `cancelled`, `full` where the copy finds no room, `unstored` where the vault's own changes found none, and
  /// the system's errors. Progress counts bytes.
  public func backup(to path: String, control: TransferControl = TransferControl()) throws(VaultError) {
    try VaultError.catching {
      let files = folder.files
      // Before anything is made: where this fails, the copy would lack what its owner believes to be in the vault.
      if !isReadOnly { do { try commit() } catch VaultError.full { throw VaultError.unstored } }
      let isNew = try files.status(of: path) == nil
      try files.makeDirectories(path)
      let target = try files.open(path, [.directory])
      guard try files.names(in: target).isEmpty else { throw VaultError.folderNotEmpty }
      var made: [String] = []
      do {
        try holding { try copy(to: path, target, &made, control) }
      } catch {
        for name in made { try? files.removeTree(name, in: target) }
        if isNew { _ = try? files.removeDirectory(path) }
        throw error
      }
    }
  }

  /// Bytes that a backup would copy now, but for the index: what its progress counts to.
  public func backupByteCount() throws(VaultError) -> UInt64 {
    try VaultError.catching { try objects.byteCount() }
  }

  private func contents(of name: String) throws -> [UInt8] {
    guard let bytes = try folder.contents(of: name) else { throw VaultError.damaged(what: name) }
    return bytes
  }

  /// The vault's keybag, and none that somebody has put there: an earlier one may open with no passcode.
  private func presentKeybag() throws -> [UInt8] {
    // Twice, where the first is one that a change of the passcode replaces just then.
    for _ in 0..<2 {
      let bytes = try contents(of: VaultFormat.keybag)
      if hasKeybag(bytes) { return bytes }
    }
    throw VaultError.damaged(what: "\(VaultFormat.keybag) was replaced while the vault was open")
  }

  /// The vault's description, and none that somebody has put there: with another one the keybag opens nothing.
  private func presentDescription() throws -> [UInt8] {
    let bytes = try contents(of: VaultFormat.description)
    guard bytes == VaultDescription(id: id).bytes else {
      throw VaultError.damaged(what: "\(VaultFormat.description) was replaced while the vault was open")
    }
    return bytes
  }

  /// - Parameter made: gets the names of what is made, and of nothing that somebody else has put there meanwhile.
  private func copy(
    to path: String, _ target: OwnedDescriptor, _ made: inout [String], _ control: TransferControl
  ) throws {
    let files = folder.files
    // A name that somebody else puts there is not followed, and what lies at the path is what was opened.
    let copied = try files.open(VaultFormat.index, [.readWrite, .createNew, .noFollow], in: target)
    made = ["", "-journal", "-wal", "-shm"].map { VaultFormat.index + $0 }
    let place = path + "/" + VaultFormat.index
    func demandPlace() throws {
      guard let found = try files.status(of: place), try found.isSameFile(as: copied.status()) else {
        throw VaultError.damaged(what: "the folder of the copy was replaced while it was made")
      }
    }
    try demandPlace()
    let (_, nextObject) = try index.copy(to: place, isCancelled: control.isCancelled)
    try demandPlace()
    try copied.sync()
    guard try files.makeDirectory(VaultFormat.objects, in: target) else { throw VaultError.folderNotEmpty }
    made.append(VaultFormat.objects)
    let objectFolder = try files.open(VaultFormat.objects, [.directory, .noFollow], in: target)
    try objects.copyAll(
      to: objectFolder, madeSince: { [self] in nextObject..<index.read { $0.root.nextObject } }, control)
    // From then on nothing held the objects still.
    guard !self.files.isClosed else { throw VaultError.needsReopening }
    for name in [VaultFormat.keybag, VaultFormat.description] {
      let bytes = try name == VaultFormat.keybag ? presentKeybag() : presentDescription()
      // The description last: a folder without it is no vault.
      try target.sync()
      guard try files.status(of: name, in: target) == nil else { throw VaultError.folderNotEmpty }
      made.append(name)
      try files.replaceDurably(name, in: target, with: bytes)
    }
  }
}

extension ObjectStore {
  fileprivate func byteCount() throws -> UInt64 {
    var total: UInt64 = 0
    for folderName in try files.names(in: root) {
      guard try files.status(of: folderName, in: root)?.kind == .directory else { continue }
      let folder = try files.open(folderName, [.directory, .noFollow], in: root)
      for name in try files.names(in: folder) { total += try files.status(of: name, in: folder)?.byteCount ?? 0 }
    }
    return total
  }

  /// Copies all objects but those `madeSince`: nothing that was copied knows them.
  fileprivate func copyAll(
    to target: OwnedDescriptor, madeSince: () -> Range<UInt64>, _ control: TransferControl
  ) throws {
    let buffer = TransferBuffer(count: 1 << 20)
    var newer: Set<[String]> = []
    var known = madeSince().lowerBound
    for folderName in try files.names(in: root).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      let digits = String(decoding: folderName, as: UTF8.self)
      guard let status = try files.status(of: digits, in: root), status.kind == .directory else { continue }
      let source = try files.open(digits, [.directory, .noFollow], in: root)
      var copy: OwnedDescriptor?
      let names = try files.names(in: source).map { String(decoding: $0, as: UTF8.self) }
      // After the names were read, so that none of them is newer than what is asked about here.
      let end = madeSince().upperBound
      while known < end {
        let place = objectPlace(known)
        newer.insert([place.folder, place.name])
        known += 1
      }
      for name in names where !newer.contains([digits, name]) {
        if copy == nil {
          try files.makeDirectory(digits, in: target)
          copy = try files.open(digits, [.directory, .noFollow], in: target)
        }
        guard let copy else { continue }
        try self.copy(name, from: source, to: copy, buffer, control)
      }
      try copy?.sync()
    }
    try target.sync()
  }

  private func copy(
    _ name: String, from source: OwnedDescriptor, to target: OwnedDescriptor, _ buffer: TransferBuffer,
    _ control: TransferControl
  ) throws {
    // What is gone was removed since the folder was read: the copied commit does not refer to it.
    guard try files.status(of: name, in: source)?.kind == .file else { return }
    let opened = Result { () throws(SystemError) in
      try files.open(name, [.readOnly, .noFollow, .nonBlocking], in: source)
    }
    if case .failure(let error) = opened, error.isAbsent { return }
    let file = try opened.get()
    let copy = try files.open(name, [.readWrite, .createNew, .noFollow], in: target)
    var offset: UInt64 = 0
    // What is behind that came since, and the copied commit knows nothing of it: who writes faster than this would keep it going.
    let end = try file.status().byteCount
    while offset < end {
      if control.isCancelled() { throw VaultError.cancelled }
      let part = UnsafeMutableRawBufferPointer(
        rebasing: buffer.bytes[..<Int(min(UInt64(buffer.bytes.count), end - offset))])
      let count = try file.readFully(at: offset, into: part)
      let bytes = UnsafeRawBufferPointer(rebasing: part[..<count])
      // A hole reads as the zeros that are not written: free slots stay given back to the disk.
      if bytes.contains(where: { $0 != 0 }) { try copy.writeAll(bytes, at: offset) }
      offset += UInt64(count)
      control.progress(count)
      if count < part.count { break }
    }
    try copy.truncate(to: offset)
    try copy.sync()
  }
}
