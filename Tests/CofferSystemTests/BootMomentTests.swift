#if os(Linux)
  import Foundation
  import Testing

  @testable import CofferSystem

  /// The clock that delays go by, for whoever starts the program in a time namespace of their own.
  @Suite struct BootMomentTests {
    private static let user = ["/usr/bin/unshare", "--user", "--map-root-user", "--time"]

    @Test func `an offset is taken back where it is known, and nothing is trusted where it is not`() {
      func seconds(_ own: String, _ children: String?, _ offsets: String?) -> Int64? {
        TimeNamespace.offset(own: own, children: children, offsets: offsets)?.seconds
      }
      let text = "monotonic           7         0\nboottime         5000         9\n"
      #expect(seconds(TimeNamespace.first, "time:[1]", text) == 0)
      #expect(seconds("time:[1]", "time:[1]", text) == 5000)
      #expect(TimeNamespace.offset(own: "time:[1]", children: "time:[1]", offsets: text)?.nanoseconds == 9)
      #expect(seconds("time:[1]", "time:[1]", "boottime -3600 0\n") == -3600)
      // What is written there is the children's.
      #expect(seconds("time:[1]", "time:[2]", text) == nil)
      #expect(seconds("time:[1]", TimeNamespace.first, text) == nil)
      for (children, offsets) in [
        (nil, text), ("time:[1]", nil), ("time:[1]", ""), ("time:[1]", "monotonic 7 0\n"), ("time:[1]", "boottime 5\n"),
        ("time:[1]", "boottime x 0\n"), ("time:[1]", "boottime 5 1000000000\n"),
      ] {
        #expect(seconds("time:[1]", children, offsets) == nil, "\(offsets ?? "no file")")
      }
    }

    @Test(.enabled(if: canUnshare, "the system lets nobody have a time namespace"))
    func `a process in a time namespace reads the same clock`() throws {
      let here = try Self.moment([])
      #expect(here.boot == BootMoment.system.boot.hexadecimal)
      for offset in ["36000", "864000"] {
        let there = try Self.moment(Self.user + ["--boottime", offset])
        #expect(there.boot == here.boot)
        #expect((0..<60).contains(there.seconds - here.seconds), "\(there.seconds) beside \(here.seconds)")
      }
      // One within another.
      let nested = try Self.moment(
        Self.user + ["--boottime", "36000", "--fork"] + Self.user + ["--boottime", "72000"])
      #expect(nested.boot != here.boot || (0..<60).contains(nested.seconds - here.seconds))
    }

    @Test(.enabled(if: canUnshare, "the system lets nobody have a time namespace"))
    func `where the system hides what it knows, each process begins another boot`() throws {
      var boots: Set = [BootMoment.system.boot.hexadecimal]
      let hide = ["/usr/bin/unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c"]
      for place in ["/proc/$$/ns", "/proc/$$/ns", "/proc/sys/kernel/random", "/proc/sys/kernel/random"] {
        boots.insert(try Self.moment(hide + ["mount -t tmpfs none \(place) && exec \"$0\" \"$1\""]).boot)
      }
      #expect(boots.count == 5)
    }

    private static let canUnshare = (try? run(user + ["--boottime", "5", "/bin/true"])) != nil

    private static func moment(_ prefix: [String]) throws -> (boot: String, seconds: Int) {
      let program = try #require(Bundle.main.executableURL).deletingLastPathComponent()
        .appending(path: "coffer-crash-child").path
      let parts = try run(prefix + [program, "moment"]).split(separator: " ")
      return (String(try #require(parts.first)), try #require(parts.last.flatMap { Int($0) }))
    }

    private struct Failure: Error {}

    private static func run(_ command: [String]) throws -> String {
      let process = Process()
      let output = Pipe()
      process.executableURL = URL(filePath: command[0])
      process.arguments = Array(command.dropFirst())
      process.standardOutput = output
      try process.run()
      let bytes = output.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      guard process.terminationStatus == 0 else { throw Failure() }
      return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)
    }
  }
#endif
