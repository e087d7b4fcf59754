internal import CFuse3
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Glibc

/// What the kernel asks of content.
extension MountServer {
  static func setContentOperations(_ operations: inout fuse_lowlevel_ops) {
    operations.create = { request, folder, name, mode, info in
      Request.answer(request) { request, server in
        let node = NewNode(permissions: UInt16(mode & 0o7777), owner: request.owner)
        let folder = server.number(folder)
        let (attributes, file) = try lookingAnew(unless: info!.pointee.flags & O_EXCL != 0) {
          try server.withRoom {
            UntoldDetails.isUnnamed
              ? try server.view.createFile(withoutNameIn: folder, node)
              : try server.view.createFile(Array(name!), in: folder, node)
          }
        }
        do {
          try server.willTell(CollectionOfOne(attributes.number))
        } catch {
          try? file.close()
          throw error
        }
        var entry = server.entry(attributes)
        server.keep(file, in: &info!.pointee)
        // The caller is gone: nobody will release it.
        if fuse_reply_create(request.handle, &entry, info) == -ENOENT {
          server.release(info)
          server.didGiveBack(attributes.number)
        }
      }
    }
    operations.open = { request, number, info in
      Request.answer(request) { request, server in
        let number = server.number(number)
        let flags = info!.pointee.flags
        // For writing, reading too: the kernel fills the pages that it keeps. Who opens for reading may still cut the file off,
        // and the kernel has asked whether they may write.
        let isWriting = flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0
        let file = try existing { try server.view.open(number, isWriting ? .writing : .reading) }
        if flags & O_TRUNC != 0 {
          try server.dropPrivileges(of: number, for: request)
          try server.changingContent(of: number) { try server.withRoom { try file.truncate(to: 0) } }
        }
        server.keep(file, in: &info!.pointee)
        if fuse_reply_open(request.handle, info) == -ENOENT { server.release(info) }
      }
    }
    operations.release = { request, _, info in
      Request.answer(request) { request, server in
        server.release(info)
        request.done()
      }
    }
    operations.read = { request, _, count, offset, info in
      Request.answer(request) { request, server in
        guard let file = OpenFiles.file(info) else { return request.fail(EBADF) }
        try server.buffers.with(count) { buffer in
          let found = try file.read(at: UInt64(offset), into: buffer)
          fuse_reply_buf(request.handle, buffer.bindMemory(to: CChar.self).baseAddress, found)
        }
      }
    }
    operations.write = { request, number, bytes, count, offset, info in
      Request.answer(request) { request, server in
        // The library keeps its buffer for requests to come: no plaintext stays in it.
        defer { overwrite(UnsafeMutableRawBufferPointer(mutating: UnsafeRawBufferPointer(start: bytes, count: count))) }
        guard let file = OpenFiles.file(info) else { return request.fail(EBADF) }
        let content = UnsafeRawBufferPointer(start: bytes, count: count)
        let range = UInt64(offset)..<(UInt64(offset) + UInt64(count))
        guard let info, info.pointee.writepage == 0 else {
          // What comes from the kernel's pages was written before, to a file without such bits.
          do {
            try server.pastPages.bringingBack(file.number, range) { part in
              let bytes = content[Int(part.lowerBound - range.lowerBound)..<Int(part.upperBound - range.lowerBound)]
              try server.withRoom { try file.write(UnsafeRawBufferPointer(rebasing: bytes), at: part.lowerBound) }
            }
          } catch {
            server.didLosePages(error)
            throw error
          }
          fuse_reply_write(request.handle, count)
          return
        }
        do {
          try server.write(content, to: file, range, info.pointee, request)
        } catch {
          request.fail(error)
          // The kernel had put the bytes into its pages before it asked, and takes them out again, but not of mappings of programs that
          // have found them there meanwhile. (Where there is no room, what such programs have stored there themselves may find some
          // later.)
          if !OpenFiles.isDirect(info), error as? ViewError == .locked { server.changes.add([.content(number, range)]) }
        }
      }
    }
    operations.fsync = { request, _, _, info in
      Request.answer(request) { request, _ in
        guard let file = OpenFiles.file(info) else { return request.fail(EBADF) }
        try file.sync()
        request.done()
      }
    }
    setRangeOperations(&operations)
  }

  /// Answers a write of a program, or throws.
  private func write(
    _ content: UnsafeRawBufferPointer, to file: ViewFile, _ range: Range<UInt64>, _ info: fuse_file_info,
    _ request: Request
  ) throws {
    try dropPrivileges(of: file.number, for: request)
    // The kernel takes the end for where it knew it last, and another mount may have written there since. (Who asks for
    // RWF_NOAPPEND cannot be told from that, and appends.)
    let isAppended = info.flags & O_APPEND != 0
    let offset = isAppended && view.hasOthers ? nil : range.lowerBound
    func write() throws -> (offset: UInt64, count: Int) {
      try withRoom { try file.writeSome(content, at: offset) }
    }
    if OpenFiles.isDirect(info) {
      try dropPrivilegesPastPages(of: file.number, for: request)
      // What is appended may go further behind than the kernel knows.
      let written = try writingPastPages(
        file.number, range.lowerBound..<(isAppended ? .max : range.upperBound), write)
      // For its own pages the kernel asks for that itself (O_SYNC and O_DSYNC, RWF_DSYNC).
      if info.flags & O_DSYNC != 0 { try file.sync() }
      fuse_reply_write(request.handle, written)
    } else {
      // The kernel has put the bytes where it thought that they would go, or read there meanwhile.
      let written = try write()
      // Of what it is not told to be written it takes back what it put there by itself.
      let isElsewhere = written.offset != range.lowerBound
      let isToldAfter = wasDisturbed(file.number) || isElsewhere
      fuse_reply_write(request.handle, written.count)
      if isToldAfter { changes.add([.content(kernelNumber(file.number))]) }
    }
  }

  private static func setRangeOperations(_ operations: inout fuse_lowlevel_ops) {
    operations.fallocate = { request, _, mode, offset, count, info in
      Request.answer(request) { request, server in
        guard let file = OpenFiles.file(info) else { return request.fail(EBADF) }
        guard offset >= 0, count > 0 else { return request.fail(EINVAL) }
        let (end, overflows) = UInt64(offset).addingReportingOverflow(UInt64(count))
        guard !overflows, end <= ViewFile.byteCountLimit else { return request.fail(EFBIG) }
        try server.dropPrivileges(of: file.number, for: request)
        try server.changingContent(of: file.number) {
          try server.withRoom {
            try server.allocate(UInt64(offset)..<end, mode, of: file)
            try file.touch()
          }
          if OpenFiles.isSynced(info) { try file.sync() }
        }
        request.done()
      }
    }
    operations.lseek = { request, _, offset, whence, info in
      Request.answer(request) { request, server in
        guard let file = OpenFiles.file(info) else { return request.fail(EBADF) }
        guard offset >= 0 else { return request.fail(ENXIO) }
        guard whence == SEEK_DATA || whence == SEEK_HOLE else { return request.fail(EINVAL) }
        try server.whenWrittenBack([file.number], request, .needed) { request, _ in
          let found =
            whence == SEEK_DATA ? try file.nextData(from: UInt64(offset)) : try file.nextHole(from: UInt64(offset))
          fuse_reply_lseek(request.handle, off_t(found))
        }
      }
    }
    operations.copy_file_range = { request, _, from, input, _, to, output, count, _ in
      Request.answer(request) { request, server in
        guard let source = OpenFiles.file(input), let target = OpenFiles.file(output) else {
          return request.fail(EBADF)
        }
        try server.dropPrivileges(of: target.number, for: request)
        let copied = try server.changingContent(of: target.number) {
          let copied = try server.withRoom {
            try server.copy(min(count, MountServer.copyLimit), from: source, UInt64(from), to: target, UInt64(to))
          }
          // As of writes the system's own file systems do it, and the kernel asks for none.
          if OpenFiles.isSynced(output) { try target.sync() }
          return copied
        }
        fuse_reply_write(request.handle, copied)
      }
    }
  }

  /// Keeps an open file for the kernel, and says how it may use what it has of its content.
  private func keep(_ file: ViewFile, in info: inout fuse_file_info) {
    let isDirect = writesPastPages(file.number, info.flags)
    if !isDirect { didOpen(file.number, isWriting: file.access == .writing) }
    openFiles.keep(file, isDirect: isDirect, in: &info)
    info.keep_cache = 1
  }

  private func release(_ info: UnsafeMutablePointer<fuse_file_info>?) {
    let isDirect = OpenFiles.isDirect(info)
    guard let file = openFiles.giveBack(info) else { return }
    if file.access == .writing, !isDirect { writers.didClose(file.number) }
    closing.add(file)
  }

  /// Runs `body`, which changes a file's content without the kernel's pages. Where it fails, part of that may be done: the kernel
  /// would take it for nothing.
  func changingContent<Result>(of number: InodeNumber, _ body: () throws -> Result) throws -> Result {
    writers.willMoveEnd(of: number)
    do {
      return try body()
    } catch {
      changes.add([.content(kernelNumber(number))])
      throw error
    }
  }

  /// Bytes that one copy_file_range(2) does at most; the caller asks for the rest.
  private static let copyLimit = 64 << 20

  /// Copies what it can: of a failure behind that the next call is told.
  private func copy(
    _ count: Int, from source: ViewFile, _ from: UInt64, to target: ViewFile, _ to: UInt64
  ) throws -> Int {
    try buffers.with(min(count, AnswerBuffers.size)) { buffer in
      var done = 0
      while done < count {
        let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, count - done)])
        do {
          let found = try source.read(at: from + UInt64(done), into: piece)
          if found == 0 { break }
          let bytes = UnsafeRawBufferPointer(rebasing: piece[..<found])
          let written = try target.writeSome(bytes, at: to + UInt64(done)).count
          done += written
          if written < found { break }
        } catch  where done > 0 {
          // Part of the last piece may be written, and the kernel takes that for what it was.
          changes.add([.content(kernelNumber(target.number))])
          break
        }
      }
      return done
    }
  }

  /// fallocate(2). Room cannot be set aside where changes never go over what is stored, so it is only asked whether there is any for
  /// what is not stored yet; a range cannot be taken out of a file, nor put in.
  private func allocate(_ range: Range<UInt64>, _ mode: CInt, of file: ViewFile) throws {
    let keepsSize = mode & FALLOC_FL_KEEP_SIZE != 0
    switch mode & ~FALLOC_FL_KEEP_SIZE {
    case FALLOC_FL_PUNCH_HOLE where keepsSize:
      try file.punchHole(range)
    case FALLOC_FL_ZERO_RANGE:
      try file.punchHole(range)
      if !keepsSize { try file.extend(to: range.upperBound) }
    case 0:
      let space = try space()
      guard try missingByteCount(range, of: file) / space.blockSize <= space.availableBlocks else {
        throw ViewError.full
      }
      if !keepsSize { try file.extend(to: range.upperBound) }
    default: throw ViewError.unsupported
    }
  }

  /// Bytes of a range that are not stored. Where it has very many holes, as if nothing were behind them.
  private func missingByteCount(_ range: Range<UInt64>, of file: ViewFile) throws -> UInt64 {
    let end = min(range.upperBound, try file.attributes().byteCount)
    var missing: UInt64 = 0
    var position = range.lowerBound
    for _ in 0..<Self.holeLimit where position < end {
      do {
        position = min(try file.nextHole(from: position), end)
        if position == end { break }
        let data = min(try file.nextData(from: position), end)
        missing += data - position
        position = data
      } catch ViewError.noSuchPlace {
        // Nothing but a hole is left.
        break
      }
    }
    return missing + (range.upperBound - min(position, range.upperBound))
  }

  private static let holeLimit = 4096
}
