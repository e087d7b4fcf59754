internal import CFuse3

/// What the kernel may ask of a mount, and what it may do by itself.
extension MountServer {
  static let operations: fuse_lowlevel_ops = {
    var operations = fuse_lowlevel_ops()
    operations.`init` = { data, connection in
      guard let data, let connection else { return }
      let server = Unmanaged<MountServer>.fromOpaque(data).takeUnretainedValue()
      server.configure(&connection.pointee)
      server.didBecomeLive()
    }
    operations.forget = { request, number, count in
      guard let request, let data = fuse_req_userdata(request) else { return }
      let server = Unmanaged<MountServer>.fromOpaque(data).takeUnretainedValue()
      server.didGiveBack(server.number(number), count)
      fuse_reply_none(request)
    }
    setNameOperations(&operations)
    setAttributeOperations(&operations)
    setFolderOperations(&operations)
    setContentOperations(&operations)
    return operations
  }()

  /// What the kernel may do by itself. Locks of files are not asked for: it keeps them, for there is no other machine.
  private func configure(_ connection: inout fuse_conn_info) {
    let wanted =
      FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS
      | FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_ASYNC_READ
    // What programs write comes here at once. A kernel that keeps it would tell lseek(2) of holes that are none, so that
    // cp(1) would copy zeros, count blocks too late, and believe no size that another mount has made.
    // Pages stay until they are declared void, whatever the times say; locks stay with the kernel; a buffer is written to
    // and read from, without pipes between; and of clearing bits, see KernelChannel. A kernel that answers for direct I/O by itself
    // (O_DIRECT by io_submit(2)) asks for no sync that O_DSYNC wants, sends the parts of one append side by side, and keeps attributes
    // from before.
    let unwanted =
      FUSE_CAP_ASYNC_DIO | FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_POSIX_LOCKS
      | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE
      | FUSE_CAP_HANDLE_KILLPRIV
    connection.want |= UInt32(wanted) & connection.capable
    connection.want &= ~UInt32(unwanted)
    // More than are answered at once: what the kernel keeps behind those is taken for heard else (``Hearing``).
    connection.max_background = UInt32(FuseSession.threadCount + RequestLoop.spareLimit + 1)
    connection.congestion_threshold = 48
    connection.time_gran = 1
  }
}
