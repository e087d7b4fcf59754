internal import CFuse3
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Glibc

/// What the kernel asks of attributes.
extension MountServer {
  static func setAttributeOperations(_ operations: inout fuse_lowlevel_ops) {
    operations.getattr = { request, number, _ in
      Request.answer(request) { request, server in
        try request.reply { try server.view.attributes(of: server.number(number)) }
      }
    }
    operations.setattr = { request, number, values, mask, info in
      Request.answer(request) { request, server in
        let number = server.number(number)
        // The size first: where it cannot be, nothing else is.
        if mask & FUSE_SET_ATTR_SIZE != 0 {
          let size = UInt64(clamping: values!.pointee.st_size)
          try server.dropPrivileges(of: number, for: request)
          try server.changingContent(of: number) {
            if let file = OpenFiles.file(info) {
              try server.withRoom { try file.truncate(to: size) }
            } else {
              try server.cut(number, to: size)
            }
          }
        }
        let changes = AttributeChanges(values!.pointee, mask)
        // What programs stored to mappings before counts as a change when the kernel gives it back, and would take back a time that
        // is set. (While it changes the size it gives nothing back, and waits for the answer.)
        let setsTime = if case .at = changes.modified { mask & FUSE_SET_ATTR_SIZE == 0 } else { false }
        try server.whenWrittenBack(setsTime ? [number] : [], request, .wanted) { request, server in
          try MountServer.setAttributes(changes, of: number, isEmpty: mask == 0, request, server)
        }
      }
    }
    operations.statfs = { request, _ in
      Request.answer(request) { request, server in
        let space = try server.space()
        var found = statvfs()
        found.f_bsize = UInt(space.blockSize)
        found.f_frsize = UInt(space.blockSize)
        found.f_blocks = fsblkcnt_t(space.blocks)
        found.f_bfree = fsblkcnt_t(space.freeBlocks)
        found.f_bavail = fsblkcnt_t(space.availableBlocks)
        found.f_files = fsfilcnt_t(space.files)
        found.f_ffree = fsfilcnt_t(space.freeFiles)
        found.f_favail = fsfilcnt_t(space.freeFiles)
        found.f_namemax = UInt(VaultPath.nameLimit)
        fuse_reply_statfs(request.handle, &found)
      }
    }
    setExtendedAttributeOperations(&operations)
  }

  /// Cuts a file that the caller has not opened.
  private func cut(_ number: InodeNumber, to size: UInt64) throws {
    let file = try existing { try view.open(number, .writing) }
    try withRoom { try file.truncate(to: size) }
    try file.close()
  }

  /// - Parameter isEmpty: the request is to set nothing at all, the size neither.
  private static func setAttributes(
    _ changes: AttributeChanges, of number: InodeNumber, isEmpty: Bool, _ request: Request, _ server: MountServer
  ) throws {
    let changesOwner = changes.user != nil || changes.group != nil
    if changesOwner || isEmpty {
      try existing {
        if try changesOwner || request.mayTakePrivileges(of: number, server) {
          // Of root it is not told here whether it lacks the right to leave them (CAP_FSETID).
          try server.dropPrivileges(of: number) { request.owner.user == 0 || request.isMember(of: $0) }
        }
      }
    }
    try request.reply {
      changes.isEmpty
        ? try server.view.attributes(of: number) : try server.view.setAttributes(changes, of: number)
    }
  }

  private static func setExtendedAttributeOperations(_ operations: inout fuse_lowlevel_ops) {
    operations.getxattr = { request, number, name, room in
      Request.answer(request) { request, server in
        let name = try attributeName(name!)
        request.reply(
          try existing { try server.view.extendedAttribute(name, of: server.number(number)) }, room: room)
      }
    }
    operations.listxattr = { request, number, room in
      Request.answer(request) { request, server in
        let names = try existing { try server.view.extendedAttributeNames(of: server.number(number)) }
        // The kernel shows the values of such to nobody else, and leaves it to the file system to show no names.
        let isTrusted = request.owner.user == 0
        let shown = names.filter { isKept($0) && (isTrusted || !$0.starts(with: "trusted.".utf8)) }
        request.reply(shown.flatMap { $0 + [0] }, room: room)
      }
    }
    operations.setxattr = { request, number, name, value, count, flags in
      Request.answer(request) { request, server in
        let name = try attributeName(name!)
        let number = server.number(number)
        let mode: AttributeMode
        switch flags {
        case 0: mode = .createOrReplace
        case 1: mode = .create  // XATTR_CREATE
        case 2: mode = .replace  // XATTR_REPLACE
        // Both can never be: which of them it fails by depends on whether it is there.
        case 3:
          _ = try existing { try server.view.extendedAttribute(name, of: number) }
          return request.fail(EEXIST)
        default: return request.fail(EINVAL)
        }
        let bytes = Array(UnsafeRawBufferPointer(start: value, count: count))
        try existing {
          try server.withRoom { try server.view.setExtendedAttribute(name, of: number, to: bytes, mode: mode) }
        }
        request.done()
      }
    }
    operations.removexattr = { request, number, name in
      Request.answer(request) { request, server in
        let name = try attributeName(name!)
        try existing { try server.view.removeExtendedAttribute(name, of: server.number(number)) }
        request.done()
      }
    }
  }
}

/// The name of an extended attribute that is kept.
private func attributeName(_ text: UnsafePointer<CChar>) throws -> [UInt8] {
  let name = Array(text)
  guard isKept(name) else { throw ViewError.unsupported }
  // A space without a name in it, as other file systems have it.
  guard !attributeSpaces.contains(name) else { throw ViewError.invalid }
  return name
}

/// Whether extended attributes of this name are kept: those in three of the spaces of xattr(7). Those that the system itself
/// would give a meaning to are not, because nobody would enforce them: access control lists, and the label of SELinux, which
/// does not look for one in such a file system. `ls -l` asks for that label at every file, until it hears that none are kept.
private func isKept(_ name: [UInt8]) -> Bool {
  name != selinuxLabel && attributeSpaces.contains { name.starts(with: $0) }
}

private let attributeSpaces = ["user.", "security.", "trusted."].map { Array($0.utf8) }
private let selinuxLabel = Array("security.selinux".utf8)

extension MountServer {
  /// After a change of content by anyone who must not leave them: its set-user-ID bits go, as write(2) has it.
  func dropPrivileges(of number: InodeNumber, for request: Request) throws {
    if request.takesPrivileges { try dropPrivileges(of: number, isMember: request.isMember) }
  }

  /// Before a write past the kernel's pages: a file's capabilities go with it, also by root, and where the kernel has not left
  /// set-user-ID bits to us, these too. For its own pages the kernel sees to that.
  func dropPrivilegesPastPages(of number: InodeNumber, for request: Request) throws {
    if !request.takesPrivileges {
      try view.dropCapabilities(of: number)
    } else if !handshake.isTaken {
      try view.dropPrivileges(of: number, isMember: request.isMember)
    }
  }

  /// Where the kernel does not do so by itself.
  fileprivate func dropPrivileges(of number: InodeNumber, isMember: (_ group: UInt32) -> Bool) throws {
    if handshake.isTaken { try view.dropPrivileges(of: number, isMember: isMember) }
  }
}

extension Request {
  /// Whether a request to set nothing takes a file's set-user-ID bits and capabilities. It is what comes of chown(2) to nobody else,
  /// for which the kernel does not ask whose the file is; and of a change of content, before which these bits are to go: from
  /// who is not root they go with that itself. (Where root has changed the content of a file that has capabilities, its
  /// set-user-ID bits go too.)
  fileprivate func mayTakePrivileges(of number: InodeNumber, _ server: MountServer) throws -> Bool {
    let user = owner.user
    return try user == 0 || server.view.attributes(of: number).owner.user == user
  }

  /// Replies with the attributes that `body` gives.
  fileprivate func reply(_ body: () throws -> FileAttributes) throws {
    var value = stat(try existing(body))
    fuse_reply_attr(handle, &value, MountServer.keepingTime)
  }

  /// The bytes, or how many there are where the caller has no room (listxattr(2)).
  fileprivate func reply(_ bytes: [UInt8], room: Int) {
    if room == 0 {
      fuse_reply_xattr(handle, bytes.count)
    } else if bytes.count > room {
      fail(ERANGE)
    } else {
      bytes.withUnsafeBytes { bytes in
        _ = fuse_reply_buf(handle, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count)
      }
    }
  }
}

extension AttributeChanges {
  fileprivate init(_ values: stat, _ mask: CInt) {
    func has(_ flag: CInt) -> Bool { mask & flag != 0 }
    self.init()
    if has(FUSE_SET_ATTR_MODE) { permissions = UInt16(values.st_mode & 0o7777) }
    if has(FUSE_SET_ATTR_UID) { user = values.st_uid }
    if has(FUSE_SET_ATTR_GID) { group = values.st_gid }
    if has(FUSE_SET_ATTR_ATIME_NOW) {
      accessed = .now
    } else if has(FUSE_SET_ATTR_ATIME) {
      accessed = .at(Timestamp(values.st_atim))
    }
    if has(FUSE_SET_ATTR_MTIME_NOW) {
      modified = .now
    } else if has(FUSE_SET_ATTR_MTIME) {
      modified = .at(Timestamp(values.st_mtim))
    }
  }
}
