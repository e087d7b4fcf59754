import Glibc
import Testing

/// What one process does is what another sees, at once.
@Suite(.enabled(if: Peer.isPossible, Peer.missing)) struct CoherenceTests {
  @Test(arguments: Ground.Kind.here) func `content that another process writes is read at once`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"), noise(100_000))
    let peer = try Peer(in: plot)
    let file = try Handle(plot("file"), O_RDWR)
    let map = try Mapping(of: file, count: 100_000)
    #expect(try file.readAll() == noise(100_000) && map.bytes == noise(100_000))
    #expect(peer.ask("f = os.open('file', os.O_RDWR)") == "None")
    #expect(peer.ask("m = mmap.mmap(f, 100000)") == "None")
    for round in 0..<30 {
      let offset = round * 3301
      #expect(peer.ask("os.pwrite(f, b'their \(round)', \(offset))") == "\(6 + "\(round)".count)")
      #expect(try file.read(6 + "\(round)".count, at: offset) == Array("their \(round)".utf8))
      #expect(map[offset..<(offset + 6)] == Array("their ".utf8))
      try file.write("our \(round)!", at: offset + 100)
      #expect(peer.ask("os.pread(f, 5, \(offset + 100))") == "b'our \("\(round)".prefix(1))'")
      #expect(peer.ask("m[\(offset + 100):\(offset + 104)]") == "b'our '")
      map[offset + 200] = UInt8(round)
      #expect(peer.ask("os.pread(f, 1, \(offset + 200))[0]") == "\(round)")
      #expect(peer.ask("m[\(offset + 201)] = \(round)") == "None")
      #expect(try file.read(1, at: offset + 201) == [UInt8(round)])
    }
  }

  @Test(arguments: Ground.Kind.here) func `size and attributes that another process changes are seen at once`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    let file = try Handle(plot("file"), O_RDONLY)
    #expect(peer.ask("f = os.open('again', os.O_RDWR | os.O_APPEND)") == "None")
    for round in 1...20 {
      #expect(peer.ask("os.write(f, bytes(1000))") == "1000")
      #expect(try file.stat().size == 8 + round * 1000 && Kernel.stat(plot("file")).size == 8 + round * 1000)
      #expect(try file.seek(0, SEEK_END) == 8 + round * 1000)
      #expect(peer.ask("os.fchmod(f, \(0o600 + round))") == "None")
      #expect(try Kernel.stat(plot("file")).permissions == 0o600 + mode_t(round))
      #expect(peer.ask("os.setxattr('file', 'user.round', b'\(round)')") == "None")
      #expect(try Kernel.attribute(plot("again"), "user.round") == Array("\(round)".utf8))
      #expect(peer.ask("os.utime('file', ns=(\(round), \(round + 1)))") == "None")
      #expect(try file.stat().modified == Moment(0, round + 1))
    }
    #expect(peer.ask("os.ftruncate(f, 3)") == "None")
    #expect(try file.stat().size == 3 && file.text == "con")
    #expect(peer.ask("os.ftruncate(f, 8)") == "None")
    #expect(try file.readAll() == Array("con".utf8) + [0, 0, 0, 0, 0])
  }

  @Test(arguments: Ground.Kind.here)
  func `names that another process changes are seen at once, also those missed before`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    for round in 0..<20 {
      let name = "name-\(round)"
      #expect(try !Kernel.exists(plot(name)))
      #expect(peer.ask("os.stat('\(name)')") == "ENOENT")
      #expect(peer.ask("os.close(os.open('\(name)', os.O_CREAT | os.O_WRONLY))") == "None")
      #expect(try Kernel.exists(plot(name)))
      #expect(try Kernel.names(plot.path).contains(name))
      try Kernel.rename(plot(name), plot("folder/moved"))
      #expect(peer.ask("os.stat('\(name)')") == "ENOENT")
      #expect(peer.ask("sorted(os.listdir('folder'))") == "['inside', 'moved']")
      #expect(peer.ask("os.unlink('folder/moved')") == "None")
      #expect(try !Kernel.exists(plot("folder/moved")) && Kernel.names(plot("folder")) == ["inside"])
      // The same name for another kind of node.
      #expect(peer.ask("os.mkdir('\(name)')") == "None")
      #expect(try Kernel.stat(plot(name)).kind == S_IFDIR && Kernel.stat(plot.path).links == 5)
      try Kernel.rmdir(plot(name))
      #expect(peer.ask("os.symlink('file', '\(name)')") == "None")
      #expect(try Kernel.text(plot(name)) == "content\n")
      #expect(peer.ask("os.unlink('\(name)'); os.symlink('empty', '\(name)')") == "None")
      #expect(try Kernel.readLink(plot(name)) == "empty" && Kernel.text(plot(name)) == "")
      try Kernel.unlink(plot(name))
    }
  }

  @Test(arguments: Ground.Kind.here) func `a fifo and a socket connect two processes`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let peer = try Peer(in: plot)
    peer.begin("f = os.open('fifo', os.O_WRONLY)")
    let reader = try Handle(plot("fifo"), O_RDONLY)
    #expect(peer.answer() == "None")
    #expect(peer.ask("os.write(f, b'through the fifo')") == "16")
    #expect(try reader.read(100) == Array("through the fifo".utf8))
    #expect(try Kernel.stat(plot("fifo")).size == 0)
    #expect(peer.ask("os.close(f)") == "None")
    #expect(try reader.read(100) == [])

    let second = try Peer(in: plot)
    #expect(peer.ask("s = socket.socket(socket.AF_UNIX); s.bind('socket'); s.listen()") == "None")
    let stat = try Kernel.stat(plot("socket"))
    #expect(stat.kind == S_IFSOCK)
    #expect(second.ask("c = socket.socket(socket.AF_UNIX); c.connect('socket'); c.sendall(b'hello')") == "None")
    #expect(peer.ask("s.accept()[0].recv(5)") == "b'hello'")
    #expect(outcome { try Kernel.open(plot("socket"), O_RDWR) } == CallError(ENXIO))
    #expect(second.ask("socket.socket(socket.AF_UNIX).bind('socket')") == "EADDRINUSE")
    try Kernel.rename(plot("socket"), plot("moved"))
    #expect(second.ask("c = socket.socket(socket.AF_UNIX); c.connect('moved'); c.sendall(b'again')") == "None")
    #expect(peer.ask("s.accept()[0].recv(5)") == "b'again'")
    #expect(peer.ask("s.close()") == "None")
    #expect(second.ask("socket.socket(socket.AF_UNIX).connect('moved')") == "ECONNREFUSED")
    try Kernel.unlink(plot("moved"))
  }

  @Test(arguments: Ground.Kind.here) func `a process that dies leaves what it wrote, and nothing open`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let peer = try Peer(in: plot)
    #expect(peer.ask("f = os.open('file', os.O_CREAT | os.O_RDWR); os.write(f, b'x' * 100000)") == "None")
    #expect(peer.ask("m = mmap.mmap(f, 100000); m[5:10] = b'mmap!'") == "None")
    #expect(
      peer.ask("g = os.open('gone', os.O_CREAT | os.O_RDWR); os.write(g, b'y' * 50000); os.unlink('gone')") == "None")
    peer.killAndWait()
    var expected = [UInt8](repeating: UInt8(ascii: "x"), count: 100_000)
    expected.replaceSubrange(5..<10, with: Array("mmap!".utf8))
    #expect(try Kernel.content(plot("file")) == expected)
    #expect(try Kernel.names(plot.path) == ["file"])
  }
}
