import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Testing

@testable import CofferVault

#if os(Linux)
  /// Real processes that guess at the same time, each on a copy of the vault of its own, with one key store: the vault's
  /// lock does not keep them apart.
  @Suite struct ParallelGuessTests {
    @Test func `processes in parallel get no more derivations than one`() throws {
      let fixture = try VaultFixture()
      let vault = try fixture.create()
      let id = vault.id
      try vault.close()
      let program = try #require(Bundle.main.executableURL).deletingLastPathComponent()
        .appending(path: "coffer-crash-child")
      var guessers: [(process: Process, output: Pipe)] = []
      for number in 0..<6 {
        let copy = fixture.folder("copy \(number)")
        try FileManager.default.copyItem(atPath: fixture.vaultPath, toPath: copy)
        let process = Process()
        let output = Pipe()
        process.executableURL = program
        process.arguments = ["guess", copy, fixture.folder("keys"), "guesser \(number)"]
        process.standardOutput = output
        guessers.append((process, output))
      }
      for guesser in guessers { try guesser.process.run() }
      var lines: [Substring] = []
      for guesser in guessers {
        let text = String(decoding: guesser.output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        lines += text.split(separator: "\n")
        guesser.process.waitUntilExit()
        #expect(guesser.process.terminationStatus == 0)
      }
      #expect(lines.count { $0.hasPrefix("wrong") } == 5)
      #expect(lines.count { $0.hasPrefix("refused") } == 6)
      // The owner waits, too, whichever copy it is.
      #expect {
        try fixture.open()
      } throws: { error in
        if case VaultError.tooManyAttempts(let seconds) = error { (1...60).contains(seconds) } else { false }
      }
      // And nothing that is stored of it says what was tried.
      let record = try #require(try fixture.keyStore.read(.attempts, of: id))
      #expect(record.count == AttemptRecord.byteCount)
    }
  }
#endif
