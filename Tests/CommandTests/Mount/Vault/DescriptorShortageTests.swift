import Glibc
import Testing

/// Programs may open more files in a mount than the agent can hold.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct DescriptorShortageTests {
  @Test(.timeLimit(.minutes(10))) func `whoever opens very many files keeps nobody from locking the vault`() throws {
    let ground = try Ground(.mount)
    let desk = ground.desk
    let paths = (0..<300).map { ground.path + "/\($0)" }
    for (number, path) in paths.enumerated() { try Kernel.makeFile(path, noise(20_000, seed: UInt64(number))) }
    try desk.served("agent", "stop")
    try ground.unlock()
    // Before the agent has opened one of them.
    let limit = try desk.run("/usr/bin/prlimit", ["--pid", "\(desk.agentProcess())", "--nofile=200:200"])
    #expect(limit.code == 0, "\(limit.errors)")
    try ground.mount()

    var files = try paths.map { try Handle($0, O_RDONLY) }
    var refused: Set<CInt> = []
    var readable = files.filter { file in
      do {
        return try file.read(1, at: 0).count == 1
      } catch {
        refused.insert((error as? CallError)?.number ?? 0)
        return false
      }
    }
    #expect(readable.count > 50 && readable.count < 200 && refused == [EMFILE])
    // Whoever wants something of the agent still gets through, with all that a command brings.
    try desk.served("put", "-", "/new", input: [1, 2, 3])
    try desk.served("lock", "--now")
    for file in files { #expect(throws: CallError(EACCES)) { try file.read(1, at: 8192) } }
    try ground.unlock()
    #expect(try Kernel.content(ground.path + "/new") == [1, 2, 3])
    for file in readable { _ = try file.read(1, at: 8192) }
    (files, readable) = ([], [])
    for (number, path) in paths.enumerated() {
      #expect(try Kernel.content(path) == noise(20_000, seed: UInt64(number)))
    }
  }
}
