import CofferSystem
import Foundation
import Glibc
import Testing

/// What the kernel knows it answers by itself. The agent stands still meanwhile, so that whatever asks it gets no answer.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct KernelCacheTests {
  let ground: Ground

  init() throws { ground = try Ground(.mount) }

  /// Does everything twice: once so that the kernel learns of it, and again when it is told to. It is a process of its own, which
  /// can be ended where it waits.
  private static let program = """
    import ctypes, fcntl, mmap, os, sys
    os.chdir("ground")
    file = os.open("folder/file", os.O_RDWR)
    folder = os.open("folder", os.O_RDONLY)
    page = mmap.mmap(file, 1 << 20, prot=mmap.PROT_READ)
    libc = ctypes.CDLL(None)
    libc.readdir.restype = ctypes.c_void_p
    libc.fdopendir.restype = ctypes.c_void_p
    listing = ctypes.c_void_p(libc.fdopendir(os.dup(folder)))
    def names():
        libc.rewinddir(listing)
        count = 0
        while libc.readdir(listing): count += 1
        return count
    def missing(name):
        try: os.stat(name)
        except FileNotFoundError: return "missing"
    def everything():
        yield "stat", os.stat("folder/file").st_size
        yield "fstat", os.fstat(file).st_nlink
        yield "lstat", os.lstat("link").st_size
        yield "missing", missing("folder/none")
        yield "readlink", os.readlink("link")
        yield "access", os.access("folder/file", os.R_OK) and os.access("folder", os.X_OK)
        yield "chdir", os.fchdir(folder) or os.chdir("..")
        yield "read", sum(len(os.pread(file, 65536, place)) for place in range(0, 1 << 20, 65536))
        yield "end", os.lseek(file, 0, os.SEEK_END)
        yield "mapping", page[12345]
        yield "names", names()
        yield "flock", fcntl.flock(file, fcntl.LOCK_EX) or fcntl.flock(file, fcntl.LOCK_UN)
        yield "range lock", fcntl.lockf(file, fcntl.LOCK_EX, 10) or fcntl.lockf(file, fcntl.LOCK_UN)
    for round in range(2): known = list(everything())
    print("known", flush=True)
    sys.stdin.readline()
    for (name, value), before in zip(everything(), known):
        print(name, (name, value) == before, flush=True)
    print("over", flush=True)
    """

  @Test func `names, attributes, links, content, entries and locks are the kernel's own`() throws {
    try Kernel.mkdir(ground.path + "/folder")
    try Kernel.makeFile(ground.path + "/folder/file", noise(1 << 20))
    for number in 0..<50 { try Kernel.makeFile(ground.path + "/folder/\(number)", []) }
    try Kernel.symlink("folder/file", at: ground.path + "/link")
    let reader = try ground.desk.start("/usr/bin/python3", ["-c", Self.program])
    #expect(reader.line() == "known\n")
    let agent = try ground.desk.agentProcess()
    kill(agent, SIGSTOP)
    defer { kill(agent, SIGCONT) }
    while try !KernelFile.text(of: "/proc/\(agent)/status").contains("State:\tT") { sched_yield() }
    #expect(reader.send(Array("\n".utf8)))
    for name in [
      "stat", "fstat", "lstat", "missing", "readlink", "access", "chdir", "read", "end", "mapping", "names", "flock",
      "range lock",
    ] { try #require(reader.line() == "\(name) True\n", "\(name)") }
    #expect(reader.line() == "over\n")
  }

  @Test(.enabled(if: Person.canBeAnother, "only root may set it"))
  func `the kernel reads so far ahead that several threads open blocks`() throws {
    let device = try Kernel.stat(ground.path).device
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xfff00)
    let text = try KernelFile.text(of: "/sys/class/bdi/\(major):\(minor)/read_ahead_kb")
    #expect(text == "1024\n")
  }
}
