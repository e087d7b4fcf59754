internal import CFuse3
internal import CofferContainer
internal import CofferFiles
internal import Glibc

/// What the kernel asks of names.
extension MountServer {
  static func setNameOperations(_ operations: inout fuse_lowlevel_ops) {
    operations.lookup = { request, folder, name in
      Request.answer(request) { request, server in
        do {
          try request.reply(server.view.lookup(Array(name!), in: server.number(folder)), server)
        } catch let error as ViewError where error == .notFound {
          var entry = MountServer.missing
          fuse_reply_entry(request.handle, &entry)
        }
      }
    }
    operations.mkdir = { request, folder, name, mode in
      Request.answer(request) { request, server in
        let node = NewNode(permissions: UInt16(mode & 0o7777), owner: request.owner)
        let made = try server.withRoom { try server.view.makeFolder(Array(name!), in: server.number(folder), node) }
        try request.reply(made, server)
      }
    }
    operations.mknod = { request, folder, name, mode, _ in
      Request.answer(request) { request, server in
        guard let kind = NodeKind(mode: mode) else { return request.fail(EPERM) }
        let node = NewNode(permissions: UInt16(mode & 0o7777), owner: request.owner)
        let made = try server.withRoom { try server.view.makeNode(kind, Array(name!), in: server.number(folder), node) }
        try request.reply(made, server)
      }
    }
    operations.symlink = { request, target, folder, name in
      Request.answer(request) { request, server in
        let node = NewNode(permissions: 0o777, owner: request.owner)
        let made = try server.withRoom {
          try server.view.makeSymbolicLink(Array(name!), in: server.number(folder), to: Array(target!), node)
        }
        try request.reply(made, server)
      }
    }
    operations.link = { request, number, folder, name in
      Request.answer(request) { request, server in
        let linked = try server.withRoom {
          try server.view.link(server.number(number), as: Array(name!), in: server.number(folder))
        }
        try request.reply(linked, server)
      }
    }
    operations.readlink = { request, number in
      Request.answer(request) { request, server in
        let target = try existing { try server.view.readLink(server.number(number)) }
        (target + [0]).withUnsafeBytes { bytes in
          _ = fuse_reply_readlink(request.handle, bytes.bindMemory(to: CChar.self).baseAddress)
        }
      }
    }
    operations.unlink = { request, folder, name in
      Request.answer(request) { request, server in
        try server.view.unlink(Array(name!), in: server.number(folder))
        request.done()
      }
    }
    operations.rmdir = { request, folder, name in
      Request.answer(request) { request, server in
        try server.view.removeFolder(Array(name!), in: server.number(folder))
        request.done()
      }
    }
    operations.rename = { request, folder, name, newFolder, newName, flags in
      Request.answer(request) { request, server in
        let mode: RenameMode
        switch flags {
        case 0: mode = .replace
        case UInt32(RENAME_NOREPLACE): mode = .refuse
        case UInt32(RENAME_EXCHANGE): mode = .exchange
        default: return request.fail(EINVAL)
        }
        let (name, newName) = (Array(name!), Array(newName!))
        // What is moved comes whole, also what programs stored to mappings and have not closed yet.
        let moved = server.mapped(name, in: folder) + (mode == .exchange ? server.mapped(newName, in: newFolder) : [])
        try server.whenWrittenBack(moved, request, .whole) { request, server in
          try server.withRoom {
            try server.view.rename(
              name, in: server.number(folder), to: newName, in: server.number(newFolder), mode: mode)
          }
          request.done()
        }
      }
    }
  }

  /// What has the name, where programs may store to mappings of any file.
  private func mapped(_ name: [UInt8], in folder: fuse_ino_t) -> [InodeNumber] {
    if writers.isEmpty { return [] }
    return (try? view.lookup(name, in: number(folder))).map { [$0.number] } ?? []
  }
}

extension Request {
  /// Tells the kernel of a file, which it knows from then on.
  fileprivate func reply(_ attributes: FileAttributes, _ server: MountServer) throws {
    try server.willTell(CollectionOfOne(attributes.number))
    var entry = server.entry(attributes)
    // The caller is gone.
    if fuse_reply_entry(handle, &entry) == -ENOENT { server.didGiveBack(attributes.number) }
  }
}
