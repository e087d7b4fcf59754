import Foundation
import Glibc
import Testing

/// Every command does beside a mount what it does without one, and the mount goes on.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) final class EveryCommandTests {
  let ground: Ground
  private var desk: Desk { ground.desk }
  /// A program has it open all the time.
  private let log: Handle
  private var written = ""
  private var tried: Set<[String]> = []

  init() throws {
    ground = try Ground(.mount)
    log = try Handle(ground.path + "/log", O_CREAT | O_RDWR | O_APPEND)
  }

  /// Groups of commands, what shows nothing of a vault, and what makes another one.
  private static let others: [[String]] = [
    ["agent"], ["app"], ["policy"], ["audit"], ["escrow"], ["agent", "run"], ["init"],
  ]

  /// Runs a command, which must do it; the program goes on.
  @discardableResult
  private func works(
    _ name: [String], _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RunningProgram.Outcome {
    tried.insert(name)
    let outcome = try desk.run("coffer", name + arguments)
    #expect(outcome.code == 0, "\(name): \(outcome.errors)", sourceLocation: sourceLocation)
    try log.write("\(name)\n")
    written += "\(name)\n"
    #expect(try log.text == written, sourceLocation: sourceLocation)
    return outcome
  }

  @Test(.timeLimit(.minutes(5))) func `each works beside a program that writes in a mount`() async throws {
    func content(_ name: String) throws -> [UInt8] { try Kernel.content(ground.path + "/" + name) }

    // Files and names.
    try desk.write("source", noise(70_000))
    try works(["put"], "source", "/source")
    #expect(try content("source") == noise(70_000))
    try Kernel.makeFile(ground.path + "/made", noise(50_000, seed: 2))
    #expect(try works(["cat"], "/made").bytes == noise(50_000, seed: 2))
    try works(["get"], "/made", "out")
    #expect(try desk.read("out/made") == noise(50_000, seed: 2))
    try works(["mkdir"], "/folder")
    try works(["mv"], "/source", "/folder/moved")
    #expect(try content("folder/moved") == noise(70_000))
    #expect(try works(["ls"], "-R").output == "folder/\nfolder/moved\nlog\nmade\n")
    #expect(try works(["stat"], "/made").output.contains("size        50000"))
    try works(["rm"], "/folder/moved")
    #expect(try Kernel.names(ground.path + "/folder") == [])
    try desk.write("secret", "a password\n")
    try works(["export"], "--rncryptor", "/made", "sealed", "--rncryptor-password-file", "secret")
    try works(["import"], "--rncryptor", "sealed", "/again", "--rncryptor-password-file", "secret")
    #expect(try content("again") == noise(50_000, seed: 2))
    try works(["protect"], "/again", "none")

    // Apps.
    let team = try Team("acme", at: desk)
    let editor = try team.sign("editor", bundleId: "com.acme.editor", teamId: "ACME000001")
    try works(["app", "keygen"], "another.key")
    try works(["app", "sign"], editor, "--key", "apps-acme/team.key")
    try works(["app", "install"], editor)
    #expect(try works(["app", "list"]).output.contains("com.acme.editor"))
    #expect(try works(["apps"]).output.contains("com.acme.editor"))
    try Kernel.makeFile(ground.path + "/notice.pdf", Documents.bytes("notice-libreoffice.pdf"))
    let copy = try works(["share"], "/notice.pdf", "--with", "com.acme.editor").value
    #expect(try desk.read(copy) == Documents.bytes("notice-libreoffice.pdf"))
    try works(["app", "remove"], "com.acme.editor")

    // The vault and its keys.
    #expect(try works(["info"]).output.contains(try #require(desk.agentStatus()?["vaultID"] as? String)))
    #expect(try works(["verify"], "--deep").output.contains("damaged    nothing"))
    try works(["backup"], "copy")
    #expect(try desk.done("cat", "/made", "--vault", "copy").bytes == noise(50_000, seed: 2))
    try desk.write("new", "another passcode\n")
    try works(
      ["passcode"], "--passcode-file", "passcode", "--new-passcode-file", "new", "--new-recovery-key-file", "key")
    try lockAndUnlock()

    // A company, which lets the vault be mounted.
    try works(["escrow", "keygen"], "escrow")
    let server = try RunningServer(at: desk)
    try await server.allowOwner(["import", "mount"])
    try works(["enroll"], server.url, server.enrollmentCode())
    try works(["policy", "show"])
    let watch = try desk.start("coffer", ["policy", "watch"])
    _ = watch.line()
    try works(["policy", "refresh"])
    watch.signal(SIGINT)
    #expect(watch.wait().code == 130)
    tried.insert(["policy", "watch"])
    expect(try desk.run("coffer", ["cat", "/made"]), code: 77, says: ["saveCopy"])
    #expect(try works(["audit", "show"]).output.contains("saveCopy"))
    try works(["audit", "verify"])
    #expect(try content("made") == noise(50_000, seed: 2))

    // Mounts themselves.
    try Kernel.mkdir(desk.path("second"))
    try works(["mount"], desk.path("second"))
    #expect(try Kernel.content(desk.path("second") + "/made") == noise(50_000, seed: 2))
    try works(["unmount"], desk.path("second"))
    try endings(server)
    let untried = Set(HelpTests.commands).subtracting(tried).subtracting(Self.others)
    #expect(untried.isEmpty, "\(untried)")
  }

  private func lockAndUnlock() throws {
    #expect(try desk.served("lock", "--now").output.hasPrefix("locked\n"))
    tried.insert(["lock"])
    #expect(throws: CallError(EACCES)) { try log.readAll() }
    // As `protect` has it.
    #expect(try Kernel.content(ground.path + "/again") == noise(50_000, seed: 2))
    try desk.unserved(77, "the passcode is wrong", "unlock", "--passcode-file", "passcode")
    try works(["unlock"], "--passcode-file", "new")
    #expect(try works(["agent", "status"]).output.contains(ground.path))
  }

  /// What must have the vault to itself says so, or ends the agent and its mounts, and stores what is there.
  private func endings(_ server: RunningServer) throws {
    try desk.unserved(75, "coffer agent stop", "accept-restored", "--yes")
    // Nobody has cleared a passcode, whoever asks.
    try desk.unserved(66, "", "escrow", "clear", "absent", "--escrow-key-file", "escrow")
    try Kernel.makeFile(ground.path + "/last", noise(40_000, seed: 3))
    try desk.served("recover", "--recovery-key-file", "key", "--new-passcode-file", "passcode")
    #expect(try Kernel.names(ground.path) == [])
    #expect(try desk.agentStatus() == nil)
    try ground.unlock()
    try ground.mount()
    #expect(try Kernel.content(ground.path + "/last") == noise(40_000, seed: 3))
    try desk.served("agent", "stop")
    #expect(try Kernel.names(ground.path) == [])
    try ground.unlock()
    try ground.mount()
    let file = try Handle(ground.path + "/last", O_RDONLY)
    try desk.served("wipe", "--yes")
    #expect(throws: (any Error).self) { try file.read(1, at: 0) }
    #expect(try Kernel.names(ground.path) == [])
    #expect(server.stop().code == 0)
    tried.formUnion([["accept-restored"], ["escrow", "clear"], ["recover"], ["agent", "stop"], ["wipe"]])
  }
}
