import CofferCrypto
import CofferKeys
import CofferSystem
import CofferVaultTestSupport
import Foundation
import Glibc
import Testing

@testable import CofferVault

#if os(Linux)
  /// Starts `coffer-crash-child` and kills it.
  struct KilledChild {
    /// Holds `vault` and `keys`.
    let folder: String

    struct Outcome {
      /// Numbers of states.
      var began = 0
      var durable = 0

      /// What the child's vault held at each of its commits, foreseen from the same seed.
      func states(seed: UInt64, from start: ExpectedVault) -> [ExpectedVault] {
        var workload = VaultWorkload(seed: seed, from: start, sizes: .large)
        var states = [start]
        while states.count <= began { if workload.next().state != nil { states += workload.states } }
        return states
      }
    }

    func makeVault() throws -> CrashedVault {
      let derivation = try TestVault.derivation()
      let vault = try Vault.create(
        at: folder + "/vault", keyStore: FileKeyStore(path: folder + "/keys"), passcode: TestVault.passcode,
        derivation: derivation)
      try vault.close()
      return CrashedVault(key: try derivation.key(for: TestVault.passcode))
    }

    /// Lets the child work until it has said so many lines, and kills it at once, or after `blow` where there is one.
    /// What it says is durable counts, with a blow only until then.
    func runUntilKilled(seed: UInt64, afterLines count: Int, blow: (() throws -> Void)? = nil) throws -> Outcome {
      var ends: [CInt] = [0, 0]
      // No other child that is started meanwhile may hold an end of it.
      let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
      guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SystemError(code: errno, call: "socketpair") }
      let output = OwnedDescriptor(adopting: ends[0])
      let process = try start(seed: seed, output: ends[1])
      Glibc.close(ends[1])
      var outcome = Outcome()
      var lineCount = 0
      var isKilled = false
      var text: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4096)
      // What it said before it was killed counts, although it was read later.
      while true {
        let read = try buffer.withUnsafeMutableBytes { raw in Result { try output.read(into: raw) } }.get()
        if read == 0 { break }
        text += buffer[..<read]
        while let end = text.firstIndex(of: 10) {
          let words = String(decoding: text[..<end], as: UTF8.self).split(separator: " ")
          text.removeSubrange(...end)
          lineCount += 1
          guard words.count == 2, let state = Int(words[1]) else { continue }
          if words[0] == "began" { outcome.began = state }
          // While its disk goes away a sync may be reported as done that was not: ext4 does so, for any program.
          if words[0] == "durable", !isKilled || blow == nil { outcome.durable = state }
        }
        if lineCount >= count, !isKilled {
          isKilled = true
          try blow?()
          kill(process, SIGKILL)
        }
      }
      var status: CInt = 0
      waitpid(process, &status, 0)
      // Where the disk fails under it, it may end before it is killed.
      #expect(status & 0x7f == SIGKILL || blow != nil, "the child ended by itself: \(status)")
      #expect(lineCount >= count)
      return outcome
    }

    private func start(seed: UInt64, output: CInt) throws -> pid_t {
      let program = try #require(Bundle.main.executableURL).deletingLastPathComponent()
        .appending(path: "coffer-crash-child").path
      var actions = posix_spawn_file_actions_t()
      posix_spawn_file_actions_init(&actions)
      defer { posix_spawn_file_actions_destroy(&actions) }
      posix_spawn_file_actions_adddup2(&actions, output, 1)
      let arguments = [program, folder + "/vault", folder + "/keys", folder + "/scratch", String(seed)]
      let pointers = arguments.map { strdup($0) } + [nil]
      defer { for pointer in pointers { free(pointer) } }
      var process: pid_t = 0
      let code = posix_spawn(&process, program, &actions, nil, pointers, environ)
      guard code == 0 else { throw SystemError(code: code, call: "posix_spawn") }
      return process
    }
  }
#endif
