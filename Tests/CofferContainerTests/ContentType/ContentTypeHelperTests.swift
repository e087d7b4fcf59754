#if os(Linux)
  import CofferContainer
  import CofferSystem
  import CofferTestSupport
  import Foundation
  import Glibc
  import Testing

  /// The real helper, which is built beside the tests.
  @Suite("The content type helper")
  struct ContentTypeHelperTests {
    private static let path = Bundle.main.executableURL!.deletingLastPathComponent().path + "/coffer-content-type"

    private func script(_ body: String, in folder: TemporaryFolder) throws -> String {
      let path = folder("helper")
      try Data("#!/bin/sh\n\(body)\n".utf8).write(to: URL(filePath: path))
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
      return path
    }

    @Test(arguments: [
      ("%PDF-1.7\n", "application/pdf"), ("GIF89a\u{1}", "image/gif"), ("plain words\n", "text/plain"),
      ("{\"a\": 1}\n", "application/json"), ("{\\rtf1 }", "text/rtf"), ("\u{0}\u{1}\u{2}", "application/octet-stream"),
    ]) func `names the type of what it is sent`(text: String, expected: String) {
      #expect(ContentTypeHelper().mediaType(of: Array(text.utf8)) == expected)
    }

    @Test func `takes as much as it is given, of anything`() {
      #expect(ContentTypeHelper().mediaType(of: [UInt8](repeating: 0x61, count: 1 << 20)) == "text/plain")
      #expect(ContentTypeHelper().mediaType(of: [UInt8](repeating: 0x61, count: 3 << 20)) == "text/plain")
      for size in [1, 100, 65_536, 1 << 20] {
        #expect(ContentTypeHelper().mediaType(of: Randomness.bytes(size)) != nil)
      }
    }

    @Test func `has confined itself before it reads the first byte`() throws {
      var helper = try Subprocess(Self.path)
      let status = try Self.waitingForInput(helper.processID)
      // 2 is filter mode.
      #expect(status["Seccomp"] == "2")
      #expect(status["NoNewPrivs"] == "1")
      #expect(status["Threads"] == "1")
      let limits = try Self.table("/proc/\(helper.processID)/limits")
      func isLimited(_ name: String, to value: String) -> Bool {
        limits.contains { $0.hasPrefix(name) && $0.split(separator: " ").filter { $0 == value }.count == 2 }
      }
      #expect(isLimited("Max address space", to: "\(256 << 20)"))
      #expect(isLimited("Max cpu time", to: "5"))
      #expect(isLimited("Max open files", to: "0"))
      #expect(isLimited("Max file size", to: "0"))
      #expect(isLimited("Max core file size", to: "0"))
      // It was waiting, and not about to fail.
      let answer = try helper.converse(sending: Array("%PDF-1.4\n".utf8), receivingAtMost: 256, within: .seconds(60))
      #expect(String(decoding: answer.output, as: UTF8.self) == "application/pdf\n")
    }

    /// A process that forbids debuggers shows these to nobody but root.
    @Test(.enabled(if: geteuid() == 0)) func `holds no descriptor but its input, its output and nothing`() throws {
      let helper = try Subprocess(Self.path)
      _ = try Self.waitingForInput(helper.processID)
      let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(helper.processID)/fd")
      #expect(Set(names) == ["0", "1", "2"])
      #expect(try KernelFile.bytes(of: "/proc/\(helper.processID)/environ").isEmpty)
    }

    @Test func `that is not there has not told the type`() {
      #expect(ContentTypeHelper(path: "/nonexistent").mediaType(of: [1]) == nil)
    }

    @Test(arguments: [
      "exit 0", "echo", "printf text/plain", "echo text/plain; exit 1", "echo text/plain; kill -9 $$",
      "while true; do echo text/plain; done",
    ]) func `that answers in another way has not told the type`(body: String) throws {
      let folder = try TemporaryFolder()
      let answer = ContentTypeHelper(path: try script(body, in: folder)).mediaType(of: [1, 2, 3])
      #expect(answer == nil || answer == "")
    }

    @Test func `that hangs is killed, and has not told the type`() throws {
      let folder = try TemporaryFolder()
      let path = try script("echo $$ > '\(folder("pid"))'; exec sleep 1000", in: folder)
      #expect(ContentTypeHelper(path: path, time: .milliseconds(300)).mediaType(of: [1]) == nil)
      // When the script came as far as to tell its number, that process is gone.
      if let text = try? String(contentsOfFile: folder("pid"), encoding: .utf8), let number = Int32(text.dropLast()) {
        #expect(kill(number, 0) == -1)
      }
    }

    @Test func `may answer several at the same time`() async {
      await withTaskGroup(of: String?.self) { group in
        for _ in 0..<8 {
          group.addTask { ContentTypeHelper().mediaType(of: Array("%PDF-1.7\n".utf8)) }
        }
        for await answer in group { #expect(answer == "application/pdf") }
      }
    }

    /// The fields of a helper's status, taken when it first sleeps: it waits for nothing but its input, so that is what
    /// it was allowed to do when it was about to read the first byte.
    private static func waitingForInput(_ processID: Int32) throws -> [String: String] {
      for _ in 0..<10_000_000 {
        var fields: [String: String] = [:]
        for line in try table("/proc/\(processID)/status") {
          let parts = line.split(separator: ":", maxSplits: 1)
          if parts.count == 2 { fields[String(parts[0])] = parts[1].trimmingCharacters(in: .whitespaces) }
        }
        if fields["State"] == "S (sleeping)" { return fields }
        sched_yield()
      }
      throw SystemError(code: ETIMEDOUT, call: "read")
    }

    private static func table(_ path: String) throws -> [String] {
      try KernelFile.text(of: path).split(separator: "\n").map(String.init)
    }
  }
#endif
