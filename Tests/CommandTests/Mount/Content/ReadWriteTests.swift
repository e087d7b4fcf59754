import Glibc
import Testing

/// Reading and writing, by every call that does.
@Suite struct ReadWriteTests {
  /// Up to its limit a program writes what it can; beyond it, and for a file that is cut there, EFBIG.
  @Test(
    .enabled(if: Program.areHere("python3"), "python3 is not here"), arguments: Ground.Kind.here, ["RDWR", "WRONLY"])
  func `a limit of a file's size is kept`(kind: Ground.Kind, access: String) throws {
    let program = try Program(in: Plot.on(kind))
    let script = """
      import errno, os, resource, signal
      signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
      resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
      file = os.open("\(access)", os.O_CREAT | os.O_\(access))
      assert os.write(file, b"x" * 9000) == 9000
      assert os.write(file, b"x" * 9000) == 1000
      for call in (lambda: os.write(file, b"x"), lambda: os.ftruncate(file, 10001), lambda: os.posix_fallocate(file, 0, 10001)):
          try:
              call()
              raise SystemExit("not refused")
          except OSError as error:
              assert error.errno == errno.EFBIG, error
      assert os.fstat(file).st_size == 10000
      os.ftruncate(file, 10000)
      """
    try program.run("python3 -c '\(script)'")
  }

  @Test(arguments: Ground.Kind.here) func `the calls refuse what their manual pages say`(kind: Ground.Kind) throws {
    func on(_ name: String, _ flags: CInt, _ call: @escaping (Handle) throws -> Void) -> (Plot) throws -> Void {
      { try call(Kernel.open($0(name), flags)) }
    }
    try Refused.all(
      on: kind,
      [
        Refused("read of a file that is open for writing", EBADF, on("file", O_WRONLY) { _ = try $0.read(1) }),
        Refused("write to a file that is open for reading", EBADF, on("file", O_RDONLY) { try $0.write("x") }),
        Refused("read of a folder", EISDIR, on("folder", O_RDONLY) { _ = try $0.read(1) }),
        Refused("write to a folder", EBADF, on("folder", O_RDONLY) { try $0.write("x") }),
        Refused("read of a path handle", EBADF, on("file", GNU.pathOnly) { _ = try $0.read(1) }),
        Refused("read before the beginning", EINVAL, on("file", O_RDONLY) { _ = try $0.read(1, at: -1) }),
        Refused("write before the beginning", EINVAL, on("file", O_RDWR) { try $0.write("x", at: -1) }),
        Refused(
          "ftruncate of a file that is open for reading", EINVAL, on("file", O_RDONLY) { try $0.truncate(to: 0) }),
        Refused("ftruncate to less than nothing", EINVAL, on("file", O_RDWR) { try $0.truncate(to: -1) }),
        Refused("ftruncate of a folder", EINVAL, on("folder", O_RDONLY) { try $0.truncate(to: 0) }),
        Refused("ftruncate of a fifo", EINVAL, on("fifo", O_RDWR) { try $0.truncate(to: 0) }),
        Refused("truncate to less than nothing", EINVAL) { try Kernel.truncate($0("file"), to: -1) },
        Refused("truncate of nothing", ENOENT) { try Kernel.truncate($0("missing"), to: 0) },
        Refused("truncate of a folder", EISDIR) { try Kernel.truncate($0("folder"), to: 0) },
        Refused("truncate of a fifo", EINVAL) { try Kernel.truncate($0("fifo"), to: 0) },
        Refused("truncate below a file", ENOTDIR) { try Kernel.truncate($0("file/x"), to: 0) },
        Refused("truncate of a loop", ELOOP) { try Kernel.truncate($0("loop"), to: 0) },
        Refused("seek before the beginning", EINVAL, on("file", O_RDONLY) { try $0.seek(-1) }),
        Refused("seek back from the end too far", EINVAL, on("file", O_RDONLY) { try $0.seek(-9, SEEK_END) }),
        Refused("seek by no known rule", EINVAL, on("file", O_RDONLY) { try $0.seek(0, 99) }),
        Refused("seek in a fifo", ESPIPE, on("fifo", O_RDWR) { try $0.seek(0) }),
        Refused(
          "a mapping of a folder", ENODEV,
          on("folder", O_RDONLY) { _ = try Mapping(of: $0, count: 1, access: PROT_READ) }),
        Refused(
          "a shared mapping for writing of a file that is open for reading", EACCES,
          on("file", O_RDONLY) { _ = try Mapping(of: $0, count: 1) }),
        Refused("fsync of a path handle", EBADF, on("file", GNU.pathOnly) { try $0.sync() }),
        Refused("fsync of a fifo", EINVAL, on("fifo", O_RDWR) { try $0.sync() }),
      ])
  }

  @Test(.enabled(if: Ground.mountIsThere, Ground.missing))
  func `a file larger than a vault can hold is refused as too large`() throws {
    try Refused.all(
      on: .mount,
      [
        Refused("truncate", EFBIG) { try Kernel.truncate($0("file"), to: 1 << 60) },
        Refused("ftruncate", EFBIG) { try Kernel.open($0("file"), O_RDWR).truncate(to: 1 << 60) },
      ])
    // The kernel may learn of it only when it brings into the vault what was written, and that concerns all who sync.
    let plot = try Ground(.mount).plot()
    try Kernel.makeFile(plot("file"), "content")
    let file = try Handle(plot("file"), O_RDWR)
    #expect(outcome { try file.change(RangeChange.allocate, 1 << 60, 1) } == CallError(EFBIG))
    let error = outcome {
      try file.write("x", at: 1 << 60)
      try file.sync()
    }
    #expect(error == CallError(EFBIG))
    // What cannot be stored is not shown either.
    #expect(try file.stat().size == 7 && Kernel.stat(plot("file")).size == 7)
    try file.write("C", at: 0)
    try file.sync()
    #expect(try file.read(100, at: 0) == Array("Content".utf8))
  }

  @Test(arguments: Ground.Kind.here) func `every call that writes is seen by every call that reads`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let file = try Handle(plot("file"), O_CREAT | O_RDWR)
    var expected: [UInt8] = []
    let writers: [(String, ([UInt8], Int) throws -> Int)] = [
      ("pwrite", { bytes, offset in try file.write(bytes, at: offset) }),
      (
        "write",
        { bytes, offset in
          try file.seek(offset)
          return try file.write(bytes)
        }
      ),
      (
        "pwritev",
        { bytes, offset in
          var (first, second) = (Array(bytes[..<(bytes.count / 3)]), Array(bytes[(bytes.count / 3)...]))
          return try first.withUnsafeMutableBytes { first in
            try second.withUnsafeMutableBytes { second in
              let parts = [first, second].map { iovec(iov_base: $0.baseAddress, iov_len: $0.count) }
              return try CallError.check(pwritev(file.number, parts, 2, offset))
            }
          }
        }
      ),
      ("splice", { bytes, offset in try Self.throughPipe(bytes, to: file, at: offset) }),
      (
        "another handle with O_SYNC",
        { bytes, offset in try Handle(plot("file"), O_WRONLY | O_SYNC).write(bytes, at: offset) }
      ),
    ]
    for (round, count) in [1, 5000, 32_768, 60_001].enumerated() {
      for (number, writer) in writers.enumerated() {
        // Partly over what is there, partly behind it.
        let bytes = noise(count, seed: UInt64(round * 100 + number))
        let offset = expected.count * 2 / 3
        #expect(try writer.1(bytes, offset) == count, "\(writer.0)")
        expected = expected[..<offset] + bytes + expected.dropFirst(offset + count)
        try expectEverywhere(expected, file, plot("file"), "\(writer.0) of \(count) at \(offset)")
      }
    }
  }

  /// Reads by read, pread, preadv, sendfile, mmap and another handle.
  private func expectEverywhere(_ expected: [UInt8], _ file: Handle, _ path: String, _ what: String) throws {
    let count = expected.count
    try file.seek(0)
    #expect(firstDifference(try file.read(count + 10), expected) == nil, "read after \(what)")
    #expect(firstDifference(try file.read(count + 10, at: 0), expected) == nil, "pread after \(what)")
    var (first, second) = ([UInt8](repeating: 0, count: 7), [UInt8](repeating: 0, count: count + 9))
    let read = try first.withUnsafeMutableBytes { first in
      try second.withUnsafeMutableBytes { second in
        let parts = [first, second].map { iovec(iov_base: $0.baseAddress, iov_len: $0.count) }
        return try CallError.check(preadv(file.number, parts, 2, 0))
      }
    }
    #expect(
      read == count && firstDifference(Array((first + second)[..<count]), expected) == nil, "preadv after \(what)")
    #expect(firstDifference(try Mapping(of: file, count: count).bytes, expected) == nil, "mmap after \(what)")
    #expect(firstDifference(try Kernel.content(path), expected) == nil, "another handle after \(what)")
    let pipe = try Descriptor.pipe()
    var offset = max(0, count - 4000)
    let sent = try CallError.check(GNU.sendFile(pipe.writing.number, file.number, &offset, 4000))
    #expect(pipe.reading.read(until: nil, limit: sent) == Array(expected.suffix(4000)), "sendfile after \(what)")
    #expect(try file.stat().size == count && Kernel.stat(path).size == count, "\(what)")
  }

  private static func throughPipe(_ bytes: [UInt8], to file: Handle, at offset: Int) throws -> Int {
    let pipe = try Descriptor.pipe()
    var (done, position) = (0, offset)
    while done < bytes.count {
      let part = Array(bytes[done...].prefix(16 << 10))
      guard pipe.writing.write(part) else { throw CallError(EPIPE) }
      var left = part.count
      while left > 0 {
        left -= try CallError.check(GNU.splice(pipe.reading.number, nil, file.number, &position, left, 0))
      }
      done += part.count
    }
    return done
  }

  @Test(arguments: Ground.Kind.here) func `reading ends where the file ends`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    for size in [0, 1, 511, 4095, 4096, 4097, 32_767, 32_768, 32_769, 131_072, 1_048_577] {
      let path = plot("\(size)")
      try Kernel.makeFile(path, noise(size))
      let file = try Handle(path, O_RDONLY)
      for offset in Set([0, 1, size / 2, size - 1, size, size + 1, size + 100_000]) where offset >= 0 {
        let expected = Array(noise(size).dropFirst(offset).prefix(70_000))
        #expect(try file.read(70_000, at: offset) == expected, "\(size) at \(offset)")
      }
      #expect(try file.read(0, at: 0) == [])
      #expect(try file.stat().size == size)
    }
  }

  @Test(arguments: Ground.Kind.here) func `truncating takes away, and what is added is zeros`(kind: Ground.Kind) throws
  {
    let plot = try Plot.on(kind)
    for size in [10, 4096, 40_000, 300_000] {
      let file = try Handle(plot("\(size)"), O_CREAT | O_RDWR)
      try file.writeAll(noise(size))
      var expected = noise(size)
      for next in [size - 1, size + 1, size / 2, size * 3, 3, size + 100_000, 0, 17] {
        try next.isMultiple(of: 2) ? Kernel.truncate(plot("\(size)"), to: next) : file.truncate(to: next)
        expected = Array(expected.prefix(next)) + [UInt8](repeating: 0, count: max(0, next - expected.count))
        #expect(try firstDifference(file.readAll(), expected) == nil, "\(size) to \(next)")
        #expect(try file.stat().size == next && Kernel.stat(plot("\(size)")).size == next)
      }
      try Handle(plot("\(size)"), O_RDWR | O_TRUNC).write("new")
      #expect(try file.text == "new")
    }
  }

  @Test(arguments: Ground.Kind.here) func `O_APPEND writes at the end, wherever that is`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let one = try Handle(plot("file"), O_CREAT | O_RDWR | O_APPEND)
    let two = try Handle(plot("file"), O_WRONLY | O_APPEND)
    let plain = try Handle(plot("file"), O_RDWR)
    try one.write("one ")
    try two.write("two ")
    try one.seek(0)
    try one.write("three ")
    #expect(try one.seek(0, SEEK_CUR) == 14)
    try plain.write("more", at: 20)
    try two.write("end")
    #expect(try plain.readAll() == Array("one two three ".utf8) + [0, 0, 0, 0, 0, 0] + Array("moreend".utf8))
    try plain.truncate(to: 3)
    try one.write("!")
    // The offset of a pwrite does not matter here, as its manual page says under BUGS.
    try two.write("?", at: 0)
    #expect(try plain.text == "one!?")
    // What was set to append can be set back.
    try CallError.check(fcntl(one.number, F_SETFL, 0))
    try one.write("O", at: 0)
    #expect(try plain.text == "One!?")
  }

  @Test(arguments: Ground.Kind.here) func `O_DIRECT reads and writes the same file`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let size = 1 << 20
    let direct = try Handle(plot("file"), O_CREAT | O_RDWR | GNU.direct)
    let cached = try Handle(plot("file"), O_RDWR)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4096)
    defer { buffer.deallocate() }
    buffer.copyBytes(from: noise(size))
    #expect(try CallError.check(pwrite(direct.number, buffer.baseAddress, size, 0)) == size)
    #expect(try firstDifference(cached.readAll(), noise(size)) == nil)
    // What is in the cache is what a direct read gives, and what is written directly replaces what is in the cache.
    try cached.write(noise(70_000, seed: 2), at: 4096)
    var expected = noise(size)
    expected.replaceSubrange(4096..<74_096, with: noise(70_000, seed: 2))
    #expect(try CallError.check(pread(direct.number, buffer.baseAddress, size, 0)) == size)
    #expect(firstDifference(Array(buffer), expected) == nil)
    buffer.copyBytes(from: noise(8192, seed: 3))
    #expect(try CallError.check(pwrite(direct.number, buffer.baseAddress, 8192, 65_536)) == 8192)
    expected.replaceSubrange(65_536..<73_728, with: noise(8192, seed: 3))
    #expect(try firstDifference(cached.readAll(), expected) == nil)
    let map = try Mapping(of: cached, count: size)
    map[131_072..<135_168] = noise(4096, seed: 4)
    try map.sync()
    #expect(try CallError.check(pread(direct.number, buffer.baseAddress, 4096, 131_072)) == 4096)
    #expect(Array(buffer[..<4096]) == noise(4096, seed: 4))
    #expect(try CallError.check(pread(direct.number, buffer.baseAddress, 4096, size)) == 0)
  }
}
