internal import CFuse3
internal import CofferContainer
internal import CofferFiles
internal import Glibc

/// What the kernel asks of folders. It keeps their entries until it is told of a change.
extension MountServer {
  static func setFolderOperations(_ operations: inout fuse_lowlevel_ops) {
    operations.opendir = { request, folder, info in
      Request.answer(request) { request, server in
        info!.pointee.cache_readdir = 1
        info!.pointee.keep_cache = server.mayKeepEntries(of: server.number(folder)) ? 1 : 0
        fuse_reply_open(request.handle, info)
      }
    }
    operations.readdir = { request, folder, room, offset, _ in
      Request.answer(request) { request, server in
        try server.read(folder, room, offset, withAttributes: false, for: request)
      }
    }
    operations.readdirplus = { request, folder, room, offset, _ in
      Request.answer(request) { request, server in
        try server.read(folder, room, offset, withAttributes: true, for: request)
      }
    }
    operations.fsyncdir = { request, _, _, _ in
      Request.answer(request) { request, server in
        try server.view.commitNames()
        request.done()
      }
    }
  }

  /// Offsets 1 and 2 stand behind `.` and `..`; those of names are their cookies, which are larger.
  private func read(
    _ folder: fuse_ino_t, _ room: Int, _ offset: off_t, withAttributes: Bool, for request: Request
  ) throws {
    let folder = number(folder)
    if offset < 1 { foldersAhead.willList(folder) }
    // Names of twenty bytes, each behind what the kernel wants to know of it.
    let limit = min(4096, max(8, room / (withAttributes ? 176 : 48)))
    try withUnsafeTemporaryAllocation(byteCount: room, alignment: 8) { buffer in
      var page = FolderPage(request: request, buffer: buffer, withAttributes: withAttributes)
      var hasRoom = true
      if offset < 1 { hasRoom = page.add(".", kernelNumber(folder), .directory, nil, behind: 1) }
      if hasRoom, offset < 2 {
        hasRoom = page.add("..", kernelNumber(try view.parent(of: folder)), .directory, nil, behind: 2)
      }
      if hasRoom {
        let cookie = offset > 2 ? UInt64(offset) : nil
        var subfolders: [InodeNumber] = []
        for found in try view.readFolder(folder, after: cookie, limit: limit, withAttributes: withAttributes) {
          let isAdded = found.name.withCString { name in
            page.add(
              name, found.number.value, found.kind, found.attributes.map(entry), behind: off_t(found.cookie))
          }
          if !isAdded { break }
          if withAttributes, found.attributes != nil { page.told.append(found.number) }
          if found.kind == .directory { subfolders.append(found.number) }
        }
        foldersAhead.didShow(subfolders, of: folder)
      }
      try willTell(page.told)
      if fuse_reply_buf(request.handle, buffer.bindMemory(to: CChar.self).baseAddress, page.count) == -ENOENT {
        for number in page.told { didGiveBack(number) }
      }
    }
  }
}

/// Entries as the kernel reads them.
private struct FolderPage {
  let request: Request
  let buffer: UnsafeMutableRawBufferPointer
  let withAttributes: Bool
  var count = 0
  /// Files that the kernel knows with this page.
  var told: [InodeNumber] = []

  /// `false` where there is no room left.
  mutating func add(
    _ name: UnsafePointer<CChar>, _ number: fuse_ino_t, _ kind: NodeKind, _ entry: fuse_entry_param?,
    behind offset: off_t
  ) -> Bool {
    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
    let place = rest.bindMemory(to: CChar.self).baseAddress
    let needed: Int
    if withAttributes {
      // Without a number the kernel takes the name and its kind, and looks nothing up.
      var entry = entry ?? fuse_entry_param()
      entry.attr.st_ino = ino_t(number)
      entry.attr.st_mode |= kind.fileType
      needed = fuse_add_direntry_plus(request.handle, place, rest.count, name, &entry, offset)
    } else {
      var attributes = stat()
      attributes.st_ino = ino_t(number)
      attributes.st_mode = kind.fileType
      needed = fuse_add_direntry(request.handle, place, rest.count, name, &attributes, offset)
    }
    guard needed <= rest.count else { return false }
    count += needed
    return true
  }
}

extension Array where Element == UInt8 {
  fileprivate func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    (self + [0]).withUnsafeBytes { body($0.bindMemory(to: CChar.self).baseAddress!) }
  }
}
