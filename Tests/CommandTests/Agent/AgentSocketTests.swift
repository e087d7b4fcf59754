import CofferSystem
import CofferTestSupport
import Foundation
import Glibc
import Testing

@testable import coffer

/// Who reaches the agent, and what it takes from whoever does.
@Suite final class AgentSocketTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/kept", input: noise(5000))
    try desk.unlock()
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  @Test func `folder and socket are its user's alone, and a folder that is not is refused`() throws {
    for (place, mode) in [(desk.path("run/coffer"), 0o700), (try desk.socketPath, 0o700)] {
      let attributes = try FileManager.default.attributesOfItem(atPath: place)
      #expect(attributes[.posixPermissions] as? Int == mode)
      #expect(attributes[.ownerAccountID] as? UInt32 == geteuid())
    }
    for mode: mode_t in [0o750, 0o707] {
      #expect(chmod(desk.path("run/coffer"), mode) == 0)
      try desk.unserved(77, "not yours alone", "ls")
      expect(try desk.run("coffer", ["unlock", "--passcode-file", "passcode"]), code: 77, says: ["not yours alone"])
    }
    #expect(chmod(desk.path("run/coffer"), 0o700) == 0)
    #expect(try desk.served("ls").output == "kept\n")
    // Nor is one taken that somebody else laid there.
    try FileManager.default.moveItem(atPath: desk.path("run/coffer"), toPath: desk.path("moved"))
    try FileManager.default.createSymbolicLink(atPath: desk.path("run/coffer"), withDestinationPath: desk.path("moved"))
    try desk.unserved(77, "not yours alone", "ls")
    unlink(desk.path("run/coffer"))
    try FileManager.default.moveItem(atPath: desk.path("moved"), toPath: desk.path("run/coffer"))
  }

  @Test(.enabled(if: AnotherUser.isPossible, "needs root, setpriv and python3"))
  func `another user's connection is closed without a word`() throws {
    // As if the folder's permissions had failed.
    for place in [desk.root, desk.path("run"), desk.path("run/coffer"), try desk.socketPath] { chmod(place, 0o777) }
    let request = AgentRequest(.status(untilLocked: false), of: try FolderIdentity(at: desk.path("vault")))
    let bytes = request.message.withUnsafeBytes { Array($0) }.hexadecimal
    let script = """
      import socket, sys
      s = socket.socket(socket.AF_UNIX)
      s.connect(sys.argv[1])
      try:
        s.sendall(bytes.fromhex(sys.argv[2]))
        print(len(s.recv(1000)))
      except (BrokenPipeError, ConnectionResetError):
        print(0)
      """
    let arguments = ["-c", script, try desk.socketPath, bytes]
    let other = try desk.run("/usr/bin/setpriv", AnotherUser.options + ["/usr/bin/python3"] + arguments)
    #expect(other.value == "0", "\(other.errors)")
    // The control: the same bytes from its own user.
    let own = try desk.run("/usr/bin/python3", arguments)
    #expect(Int(own.value) ?? 0 > 100, "\(own.errors)")
    chmod(desk.path("run/coffer"), 0o700)
    #expect(try desk.served("ls").output == "kept\n")
  }

  @Test(.enabled(if: AnotherUser.isPossible, "needs root, setpriv and python3"))
  func `a command gives nothing to another user's socket`() throws {
    let place = try desk.socketPath
    try desk.served("agent", "stop")
    let script = """
      import os, socket, sys
      s = socket.socket(socket.AF_UNIX)
      s.bind(sys.argv[1])
      os.seteuid(65534)
      s.listen(1)
      print("listening", flush=True)
      c, _ = s.accept()
      print(len(c.recv(1000)))
      """
    let impostor = try desk.start("/usr/bin/python3", ["-c", script, place])
    #expect(impostor.line() == "listening\n")
    try desk.unserved(77, "another user's", "ls")
    #expect(impostor.wait().value == "0")
  }

  @Test func `what is no request closes the connection, and nothing else`() throws {
    let place = try desk.socketPath
    let identity = try FolderIdentity(at: desk.path("vault"))
    func message(_ body: AgentRequest.Body, _ folder: FolderIdentity) -> [UInt8] {
      AgentRequest(body, of: folder).message.withUnsafeBytes { Array($0) }
    }
    let whole = message(.stop(isForced: false), identity)
    let listing = AgentRequest.Command(arguments: ["ls"], environment: [:], hasTerminal: false, places: [])
    let header = IncomingRequest.headerByteCount
    var hostile: [[UInt8]] = [
      Array("GET / HTTP/1.1\r\n\r\n".utf8), IncomingRequest.mark + [255, 255, 255, 255],
      IncomingRequest.mark + UInt32(AgentRequest.limit + 1).bigEndianBytes,
      IncomingRequest.mark + UInt32(0).bigEndianBytes, whole + [0],
      // A command without its descriptors.
      message(.run(listing), identity),
    ]
    for kind: UInt8 in [0, 6, 255] {
      var changed = whole
      changed[header] = kind
      hostile.append(changed)
    }
    for bytes in hostile {
      let client = try RawClient(place)
      _ = client.send(bytes)
      #expect(client.answer().isEmpty)
    }
    // For another folder: the answer is that it is another's.
    let other = try RawClient(place)
    #expect(other.send(message(.stop(isForced: false), FolderIdentity(device: 1, inode: 2))))
    #expect(other.answer() == AgentAnswer.notServed.bytes)
    #expect(try desk.served("ls").output == "kept\n")
  }

  @Test func `descriptors that nobody asked for are closed, and those of a half request`() throws {
    let process = try desk.agentProcess()
    func openCount() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count }
    let before = try openCount()
    let folder = try FileSystem().open(desk.path("run/coffer"), .directory)
    let name = URL(filePath: try desk.socketPath).lastPathComponent
    for count in [1, AgentRequest.descriptorLimit + 1, LocalSocket.descriptorLimit] {
      let socket = try #require(try LocalSocket.connect(name, in: folder, path: desk.path("run/coffer")))
      let given = try (0..<count).map { _ in try FileSystem().open("/dev/null", .readOnly) }
      let request = AgentRequest(.stop(isForced: false), of: try FolderIdentity(at: desk.path("vault"))).message
      try request.withUnsafeBytes { bytes in
        try socket.send(UnsafeRawBufferPointer(rebasing: bytes[..<5]), descriptors: given)
        if count == 1 { try socket.send(UnsafeRawBufferPointer(rebasing: bytes[5...])) }
      }
      #expect(try AgentAnswer.receive(from: socket) == nil)
    }
    // Half a request, and then the client goes.
    _ = try RawClient(desk.socketPath).send(Array(IncomingRequest.mark.dropLast()))
    #expect(try desk.served("ls").output == "kept\n")
    while try openCount() > before { _ = try desk.agentStatus() }
  }

  @Test func `many that say nothing keep nobody out who waits`() throws {
    let idle = try (0..<AgentServer.connectionLimit - 1).map { _ in try RawClient(desk.socketPath) }
    #expect(try desk.served("ls").output == "kept\n")
    withExtendedLifetime(idle) {}
  }
}

/// Programs that this user may run as another one.
enum AnotherUser {
  static let options = ["--reuid=65534", "--regid=65534", "--clear-groups"]

  static let isPossible =
    geteuid() == 0
    && ["/usr/bin/setpriv", "/usr/bin/python3"].allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }
}
