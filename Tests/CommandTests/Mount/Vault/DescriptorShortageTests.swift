import Glibc
import Testing

/// Programs may open more files in a mount than the agent can hold.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct DescriptorShortageTests {
  private let ground: Ground
  private var desk: Desk { ground.desk }
  private let paths: [String]

  /// A mounted vault with 300 files that have objects, and an agent that may have 200 descriptors.
  init() throws {
    ground = try Ground(.mount)
    let folder = ground.path
    paths = (0..<300).map { "\(folder)/\($0)" }
    for (number, path) in paths.enumerated() { try Kernel.makeFile(path, noise(20_000, seed: UInt64(number))) }
    try ground.desk.served("agent", "stop")
    try ground.unlock()
    // Before the agent has opened one of them.
    let limit = try ground.desk.run("/usr/bin/prlimit", ["--pid", "\(ground.desk.agentProcess())", "--nofile=200:200"])
    #expect(limit.code == 0, "\(limit.errors)")
    try ground.mount()
  }

  @Test(.timeLimit(.minutes(10))) func `whoever opens very many files keeps nobody from locking the vault`() throws {
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
    // That it cannot look says nothing of the vault.
    let verification = try desk.run("coffer", ["verify"])
    #expect(verification.code != 0 && verification.code != 65, "\(verification.output)")
    try desk.served("lock", "--now")
    for file in files { #expect(throws: CallError(EACCES)) { try file.read(1, at: 8192) } }
    try ground.unlock()
    #expect(try Kernel.content(ground.path + "/new") == [1, 2, 3])
    for file in readable { _ = try file.read(1, at: 8192) }
    (files, readable) = ([], [])
    for (number, path) in paths.enumerated() {
      #expect(try Kernel.content(path) == noise(20_000, seed: UInt64(number)))
    }
    try desk.served("verify")
  }

  /// Each closed file that waits is stored before the next is: there are more than descriptors.
  @Test(.timeLimit(.minutes(10))) func `what is written then and taken is stored when the agent ends`() throws {
    var files = try paths.map { try Handle($0, O_RDONLY) }
    for file in files { _ = try? file.read(1, at: 0) }
    var taken: [Int] = []
    for number in 0..<600 {
      do {
        try Kernel.makeFile(ground.path + "/new-\(number)", noise(20_000, seed: UInt64(number)))
        taken.append(number)
      } catch {
        #expect(error as? CallError == CallError(EMFILE))
      }
    }
    #expect(taken.count > 200)
    files = []
    try desk.served("agent", "stop")
    try ground.unlock()
    try ground.mount()
    for number in taken {
      #expect(try Kernel.content(ground.path + "/new-\(number)") == noise(20_000, seed: UInt64(number)), "\(number)")
    }
  }
}
