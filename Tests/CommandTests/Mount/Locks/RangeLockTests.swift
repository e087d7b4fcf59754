import Glibc
import Testing

/// Locks of ranges of bytes: a process's, and an opening's.
@Suite(.enabled(if: Peer.isPossible, Peer.missing)) struct RangeLockTests {
  private static let (read, write, none) = (Int(F_RDLCK), Int(F_WRLCK), Int(F_UNLCK))

  @Test(arguments: Ground.Kind.here) func `ranges that meet exclude each other, and others do not`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    let file = try Handle(plot("file"), O_RDWR)
    #expect(peer.ask("f = os.open('again', os.O_RDWR)") == "None")
    // The file has 8 bytes; locks may lie behind them. The peer holds a lock from 10 to 20.
    let ranges = [(0, 10, false), (0, 11, true), (10, 10, true), (15, 1, true), (19, 1, true), (20, 5, false)]
    for held in [Self.read, Self.write] {
      #expect(peer.ask("lock(f, fcntl.F_SETLK, \(held), 10, 10)[0]") == "\(held)")
      for (start, count, isMeeting) in ranges + [(0, 0, true), (19, 0, true), (20, 0, false)] {
        for wanted in [RangeLock.reading(start, count), .writing(start, count)] {
          let isRefused = isMeeting && (held == Self.write || wanted.kind == CInt(Self.write))
          for owner in [RangeLock.Owner.process, .opening] {
            let error = outcome { try file.set(wanted, of: owner) }
            #expect(error == (isRefused ? CallError(EAGAIN) : nil), "\(wanted) beside \(held), \(owner)")
            let obstacle = try file.obstacle(to: wanted, of: owner)
            if isRefused {
              let expected = RangeLock(kind: CInt(held), start: 10, count: 10, process: peer.processID)
              #expect(obstacle == expected, "\(wanted), \(owner)")
            } else {
              #expect(obstacle.kind == CInt(Self.none), "\(wanted), \(owner)")
              try file.set(.none(start, count), of: owner)
            }
          }
        }
      }
      #expect(peer.ask("lock(f, fcntl.F_SETLK, \(Self.none))[0]") == "\(Self.none)")
      #expect(outcome { try file.set(.writing()) } == nil)
      try file.set(.none())
    }
  }

  @Test(arguments: Ground.Kind.here) func `a range is split, joined and changed`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    let file = try Handle(plot("file"), O_RDWR)
    #expect(peer.ask("f = os.open('file', os.O_RDWR)") == "None")
    try file.set(.writing(0, 100))
    try file.set(.none(40, 20))
    try file.set(.reading(70, 10))
    try file.set(.writing(100, 50))
    /// What keeps the peer from writing a byte: kind, start and count.
    func obstacle(at start: Int) -> String {
      peer.ask("(lambda l: (l[0], l[2], l[3], l[4]))(lock(f, fcntl.F_GETLK, \(Self.write), \(start), 1))")
    }
    let own = getpid()
    #expect(obstacle(at: 0) == "(\(Self.write), 0, 40, \(own))")
    #expect(obstacle(at: 39) == "(\(Self.write), 0, 40, \(own))")
    #expect(obstacle(at: 40).hasPrefix("(\(Self.none),") && obstacle(at: 59).hasPrefix("(\(Self.none),"))
    #expect(obstacle(at: 65) == "(\(Self.write), 60, 10, \(own))")
    #expect(obstacle(at: 75) == "(\(Self.read), 70, 10, \(own))")
    #expect(obstacle(at: 90) == "(\(Self.write), 80, 70, \(own))")
    // Counted from the end and backwards.
    try file.set(.none())
    try file.set(RangeLock(kind: CInt(Self.write), start: -3, count: 2), whence: SEEK_END)
    #expect(obstacle(at: 5) == "(\(Self.write), 5, 2, \(own))")
    try file.set(.none())
    try file.set(.writing(30, -10))
    #expect(obstacle(at: 20) == "(\(Self.write), 20, 10, \(own))")
    try file.set(.writing(1 << 40))
    #expect(obstacle(at: 1 << 50) == "(\(Self.write), \(1 << 40), 0, \(own))")
  }

  @Test(arguments: Ground.Kind.here) func `a process's locks go with any descriptor, an opening's with its last`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    let file = try Handle(plot("file"), O_RDWR)
    #expect(peer.ask("f = os.open('file', os.O_RDWR)") == "None")
    func isFree() -> Bool { outcome { try file.set(.writing(0, 1), of: .opening) } == nil }
    func release() throws { try file.set(.none(), of: .opening) }
    #expect(peer.ask("lock(f, fcntl.F_SETLK, \(Self.write))[0]") == "\(Self.write)")
    #expect(!isFree())
    #expect(peer.ask("os.close(os.open('again', os.O_RDONLY))") == "None")
    #expect(isFree())
    try release()
    #expect(peer.ask("lock(f, 37, \(Self.write))[0]") == "\(Self.write)")
    #expect(try file.obstacle(to: .writing()) == RangeLock(kind: CInt(Self.write), start: 0, count: 0, process: -1))
    #expect(peer.ask("g = os.dup(f); os.close(os.open('again', os.O_RDONLY)); os.close(f)") == "None")
    #expect(!isFree())
    #expect(peer.ask("os.close(g)") == "None")
    #expect(isFree())
    // Two openings of one process exclude each other, and a process's lock excludes an opening's.
    let second = try Handle(plot("file"), O_RDWR)
    #expect(outcome { try second.set(.reading(0, 1), of: .opening) } == CallError(EAGAIN))
    #expect(outcome { try second.set(.reading(0, 1)) } == CallError(EAGAIN))
    #expect(outcome { try second.set(.writing(1, 1), of: .opening) } == nil)
    try release()
    // The end of a process is the end of its locks.
    #expect(peer.ask("f = os.open('file', os.O_RDWR); lock(f, fcntl.F_SETLK, \(Self.write), 0, 1)[0]") == "None")
    #expect(!isFree())
    peer.killAndWait()
    #expect(isFree())
  }

  @Test(arguments: Ground.Kind.here) func `who waits gets the range when it is free, or a signal`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    let file = try Handle(plot("file"), O_RDWR)
    #expect(peer.ask("f = os.open('file', os.O_RDWR)") == "None")
    for (owner, command) in [(RangeLock.Owner.process, "fcntl.F_SETLKW"), (.opening, "38")] {
      try file.set(.writing(5, 5), of: owner)
      peer.begin("lock(f, \(command), \(Self.write), 0, 100)[0]")
      try peer.waitUntilAsleep(in: Peer.fcntlCall)
      try file.set(.none(5, 5), of: owner)
      #expect(peer.answer() == "\(Self.write)")
      #expect(outcome { try file.set(.reading(50, 1), of: owner) } == CallError(EAGAIN))
      #expect(peer.ask("lock(f, \(command), \(Self.none))[0]") == "\(Self.none)")

      try file.set(.writing(5, 5), of: owner)
      peer.begin("lock(f, \(command), \(Self.read), 0, 100)[0]")
      try peer.waitUntilAsleep(in: Peer.fcntlCall)
      peer.signal(SIGALRM)
      #expect(peer.answer() == "Interrupted")
      try file.set(.none(), of: owner)
      #expect(outcome { try file.set(.writing(), of: owner) } == nil)
      try file.set(.none(), of: owner)
    }
  }

  @Test(arguments: Ground.Kind.here) func `two that wait for each other are told`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    let file = try Handle(plot("file"), O_RDWR)
    #expect(peer.ask("f = os.open('file', os.O_RDWR)") == "None")
    try file.set(.writing(0, 1))
    #expect(peer.ask("lock(f, fcntl.F_SETLK, \(Self.write), 1, 1)[0]") == "\(Self.write)")
    peer.begin("lock(f, fcntl.F_SETLKW, \(Self.write), 0, 1)[0]")
    try peer.waitUntilAsleep(in: Peer.fcntlCall)
    #expect(outcome { try file.wait(for: .writing(1, 1)) } == CallError(EDEADLK))
    try file.set(.none())
    #expect(peer.answer() == "\(Self.write)")
  }

  @Test(arguments: Ground.Kind.here) func `fcntl refuses what its manual page says`(kind: Ground.Kind) throws {
    func row(
      _ what: String, _ error: CInt, _ lock: RangeLock, flags: CInt = O_RDWR, of owner: RangeLock.Owner = .process,
      whence: CInt = SEEK_SET
    ) -> Refused {
      Refused("\(what), \(owner)", error) { try Kernel.open($0("file"), flags).set(lock, of: owner, whence: whence) }
    }
    var rows: [Refused] = []
    for owner in [RangeLock.Owner.process, .opening] {
      rows += [
        row("a lock for writing of what is open for reading", EBADF, .writing(), flags: O_RDONLY, of: owner),
        row("a lock for reading of what is open for writing", EBADF, .reading(), flags: O_WRONLY, of: owner),
        row("a lock of a path handle", EBADF, .reading(), flags: GNU.pathOnly, of: owner),
        row("a lock of no known kind", EINVAL, RangeLock(kind: 99, start: 0, count: 0), of: owner),
        row("a start before the beginning", EINVAL, .writing(-1, 5), of: owner),
        row("a count to before the beginning", EINVAL, .writing(3, -5), of: owner),
        row("a count beyond the largest offset", EOVERFLOW, .writing(5, .max), of: owner),
        row("no known whence", EINVAL, .writing(), of: owner, whence: 99),
      ]
    }
    rows.append(
      row(
        "an opening's lock with a process", EINVAL,
        RangeLock(kind: CInt(Self.write), start: 0, count: 0, process: 1), of: .opening))
    try Refused.all(on: kind, rows)
  }

  @Test(arguments: Ground.Kind.here) func `locks make one after another of many`(kind: Ground.Kind) throws {
    // Each reads a number and writes the next one, which is lost where two do it at once.
    let plot = try Plot.on(kind)
    let rounds = 60
    for name in ["flock", "opening"] {
      try Kernel.makeFile(plot(name), "0")
      let peers = try (0..<2).map { _ in try Peer(in: plot) }
      let (take, give) =
        name == "flock"
        ? ("fcntl.flock(f, fcntl.LOCK_EX)", "fcntl.flock(f, fcntl.LOCK_UN)")
        : ("lock(f, 38, \(Self.write))", "lock(f, 38, \(Self.none))")
      for peer in peers {
        #expect(peer.ask("f = os.open('\(name)', os.O_RDWR)") == "None")
        peer.begin(
          "[(\(take), os.pwrite(f, str(int(os.pread(f, 20, 0)) + 1).encode(), 0), \(give)) and 0 for _ in range(\(rounds))][0]"
        )
      }
      try inParallel(2) { _ in
        let file = try Handle(plot(name), O_RDWR)
        for _ in 0..<rounds {
          if name == "flock" {
            try CallError.check(flock(file.number, LOCK_EX))
          } else {
            try file.wait(for: .writing(), of: .opening)
          }
          let number = Int(try file.text) ?? 0
          try file.write("\(number + 1)", at: 0)
          if name == "flock" {
            try CallError.check(flock(file.number, LOCK_UN))
          } else {
            try file.set(.none(), of: .opening)
          }
        }
      }
      for peer in peers { #expect(peer.answer() == "0") }
      #expect(try Kernel.text(plot(name)) == "\(4 * rounds)", "\(name)")
    }
  }
}
