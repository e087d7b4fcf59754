import Glibc
import Testing

/// flock(2).
@Suite(.enabled(if: Peer.isPossible, Peer.missing)) struct FlockTests {
  private func tryLock(_ file: Handle, _ kind: CInt) -> CallError? {
    outcome { try CallError.check(flock(file.number, kind | LOCK_NB)) }
  }

  @Test(arguments: Ground.Kind.here) func `readers share, a writer is alone, in two processes and in one`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    // By another name, and however it was opened.
    for (name, other, flags) in [("file", "again", O_RDONLY), ("file", "file", O_RDWR), ("folder", "folder", O_RDONLY)]
    {
      let peer = try Peer(in: plot)
      let file = try Handle(plot(name), flags)
      let second = try Handle(plot(other), flags)
      #expect(peer.ask("f = os.open('\(other)', os.O_RDONLY)") == "None")
      for (held, wanted, isRefused) in [
        (LOCK_SH, LOCK_SH, false), (LOCK_SH, LOCK_EX, true), (LOCK_EX, LOCK_SH, true), (LOCK_EX, LOCK_EX, true),
      ] {
        #expect(tryLock(file, held) == nil)
        let expected = isRefused ? "EAGAIN" : "None"
        #expect(peer.ask("fcntl.flock(f, \(wanted) | fcntl.LOCK_NB)") == expected, "\(name): \(held), \(wanted)")
        #expect(tryLock(second, wanted) == (isRefused ? CallError(EAGAIN) : nil), "\(name): \(held), \(wanted)")
        try CallError.check(flock(second.number, LOCK_UN))
        #expect(peer.ask("fcntl.flock(f, fcntl.LOCK_UN)") == "None")
        try CallError.check(flock(file.number, LOCK_UN))
        #expect(peer.ask("fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)") == "None")
        #expect(peer.ask("fcntl.flock(f, fcntl.LOCK_UN)") == "None")
      }
    }
  }

  @Test(arguments: Ground.Kind.here) func `a lock is held until the last descriptor of its opening is closed`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    let other = try Handle(plot("file"), O_RDWR)
    #expect(peer.ask("f = os.open('file', os.O_RDWR); g = os.dup(f)") == "None")
    #expect(peer.ask("fcntl.flock(f, fcntl.LOCK_EX)") == "None")
    // Its own, by either descriptor, and another opening of the same process's is not.
    #expect(peer.ask("fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)") == "None")
    #expect(peer.ask("os.close(os.open('file', os.O_RDWR))") == "None")
    #expect(tryLock(other, LOCK_SH) == CallError(EAGAIN))
    #expect(peer.ask("os.close(f)") == "None")
    #expect(tryLock(other, LOCK_SH) == CallError(EAGAIN))
    #expect(peer.ask("os.close(g)") == "None")
    #expect(tryLock(other, LOCK_EX) == nil)
    // A change of kind gives others what it no longer keeps from them.
    #expect(peer.ask("f = os.open('again', os.O_RDWR)") == "None")
    #expect(peer.ask("fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)") == "EAGAIN")
    #expect(tryLock(other, LOCK_SH) == nil)
    #expect(peer.ask("fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)") == "None")
    #expect(tryLock(other, LOCK_EX) == CallError(EAGAIN))
  }

  @Test(arguments: Ground.Kind.here) func `who waits gets the lock when it is given up, by whatever end`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let waiter = try Peer(in: plot)
    #expect(waiter.ask("f = os.open('file', os.O_RDWR)") == "None")
    for end in ["unlock", "close", "kill"] {
      let holder = try Peer(in: plot)
      #expect(holder.ask("f = os.open('file', os.O_RDWR); fcntl.flock(f, fcntl.LOCK_EX)") == "None")
      waiter.begin("fcntl.flock(f, fcntl.LOCK_EX)")
      try waiter.waitUntilAsleep(in: Peer.flockCall)
      switch end {
      case "unlock": #expect(holder.ask("fcntl.flock(f, fcntl.LOCK_UN)") == "None")
      case "close": #expect(holder.ask("os.close(f)") == "None")
      default: holder.killAndWait()
      }
      #expect(waiter.answer() == "None", "\(end)")
      let file = try Handle(plot("file"), O_RDWR)
      #expect(tryLock(file, LOCK_SH) == CallError(EAGAIN))
      #expect(waiter.ask("fcntl.flock(f, fcntl.LOCK_UN)") == "None")
    }
  }

  @Test(arguments: Ground.Kind.here) func `a signal ends the waiting`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let file = try Handle(plot("file"), O_RDWR)
    #expect(tryLock(file, LOCK_EX) == nil)
    let waiter = try Peer(in: plot)
    #expect(waiter.ask("f = os.open('file', os.O_RDWR)") == "None")
    waiter.begin("fcntl.flock(f, fcntl.LOCK_SH)")
    try waiter.waitUntilAsleep(in: Peer.flockCall)
    waiter.signal(SIGALRM)
    #expect(waiter.answer() == "Interrupted")
    // It waits no more: nobody has the lock when this one is given up.
    try CallError.check(flock(file.number, LOCK_UN))
    #expect(tryLock(file, LOCK_EX) == nil)
    try CallError.check(flock(file.number, LOCK_UN))
    // One that is killed while it waits holds nobody up either.
    #expect(tryLock(file, LOCK_EX) == nil)
    waiter.begin("fcntl.flock(f, fcntl.LOCK_EX)")
    try waiter.waitUntilAsleep(in: Peer.flockCall)
    waiter.killAndWait()
    try CallError.check(flock(file.number, LOCK_UN))
    let other = try Handle(plot("file"), O_RDWR)
    #expect(tryLock(other, LOCK_EX) == nil)
  }

  @Test(arguments: Ground.Kind.here) func `a lock is the file's and not the name's`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    #expect(peer.ask("f = os.open('empty', os.O_RDWR); fcntl.flock(f, fcntl.LOCK_EX)") == "None")
    try Kernel.rename(plot("empty"), plot("moved"))
    let moved = try Handle(plot("moved"), O_RDWR)
    #expect(tryLock(moved, LOCK_SH) == CallError(EAGAIN))
    try Kernel.unlink(plot("moved"))
    #expect(tryLock(moved, LOCK_SH) == CallError(EAGAIN))
    try Kernel.makeFile(plot("moved"))
    #expect(try tryLock(Handle(plot("moved"), O_RDWR), LOCK_EX) == nil)
    #expect(outcome { try CallError.check(flock(moved.number, 0)) } == CallError(EINVAL))
    let path = try Handle(plot("moved"), GNU.pathOnly)
    #expect(tryLock(path, LOCK_SH) == CallError(EBADF))
  }
}
