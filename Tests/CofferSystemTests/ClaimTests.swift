import CofferTestSupport
import Foundation
import Testing

@testable import CofferSystem

/// What a process claims others can ask for, until it gives it up or ends.
struct ClaimTests {
  /// Claims byte 5 until its input ends.
  private static let claimer = """
    import fcntl, sys
    file = open(sys.argv[1], "r+")
    fcntl.lockf(file, fcntl.LOCK_EX, 1, 5)
    print("claimed", flush=True)
    sys.stdin.read()
    """

  @Test func `a claim is told to others, who cannot have it, and goes with its process`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/claims"
    let file = try FileSystem().open(path, [.readWrite, .create])
    let (process, input, output) = (Process(), Pipe(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments = ["-c", Self.claimer, path]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    #expect(try output.fileHandleForReading.read(upToCount: 8) == Data("claimed\n".utf8))
    #expect(try file.claimant(of: 5) == process.processIdentifier)
    #expect(try file.claimant(of: 6) == nil)
    #expect(try !file.claim(5))
    #expect(try file.claim(6))
    // One's own is nobody else's.
    #expect(try file.claimant(of: 6) == nil)
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    #expect(try file.claimant(of: 5) == nil)
    #expect(try file.claim(5))
    try file.disclaim(5)
    #expect(throws: SystemError.self) { try file.claim(.max) }
  }
}
