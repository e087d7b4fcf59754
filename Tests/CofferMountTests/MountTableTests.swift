#if os(Linux)
  import CofferTestSupport
  import Foundation
  import Testing

  @testable import CofferMount

  /// What is seen at a place, by the kernel's list of mounts.
  @Suite struct MountTableTests {
    private func table(_ lines: String...) -> MountTable {
      MountTable(Array(lines.joined(separator: "\n").utf8), root: "20")
    }

    private func seen(_ table: MountTable, _ place: String) -> String? { table.seen(at: Array(place.utf8))?.id }

    private static let root = "20 1 8:1 / / rw - ext4 /dev/a rw"

    @Test func `what lies on another mount at its place is seen, whichever was made first`() {
      let later = "30 20 0:30 / /a rw - tmpfs none rw"
      let earlier = "25 30 0:25 / /a rw - fuse.coffer coffer rw,user_id=7"
      for table in [table(Self.root, earlier, later), table(Self.root, later, earlier)] {
        #expect(seen(table, "/a") == "25")
        #expect(table.seen(at: Array("/a".utf8))?.user == 7)
        #expect(seen(table, "/") == "20")
        #expect(seen(table, "/a/b") == nil)
      }
    }

    @Test func `what is mounted above a place hides what lies there`() {
      let hidden = "30 20 0:30 / /a/b rw - fuse.coffer coffer rw"
      let cover = "40 20 0:40 / /a rw - tmpfs none rw"
      let moved = "25 40 0:25 / /a/b rw - tmpfs none rw"
      #expect(seen(table(Self.root, hidden), "/a/b") == "30")
      #expect(seen(table(Self.root, hidden, cover), "/a/b") == nil)
      #expect(seen(table(Self.root, moved, hidden, cover), "/a/b") == "25")
    }

    @Test func `what is mounted on the root itself is seen by nobody below it`() {
      let found = table(
        Self.root, "30 20 0:30 / /a rw - fuse.coffer coffer rw", "40 20 8:1 / / rw - ext4 /dev/a rw",
        "41 40 0:41 / /a rw - tmpfs none rw", "42 30 0:42 / /a rw - tmpfs none rw")
      #expect(seen(found, "/") == "20")
      #expect(seen(found, "/a") == "42")
    }

    @Test func `layers of one device are told from what lies between, and what lies below them goes with them`() {
      let table = table(
        Self.root, "30 20 0:30 / /a rw - fuse.coffer coffer rw", "31 30 0:31 / /a rw - tmpfs none rw",
        "32 31 0:30 / /a rw - fuse.coffer coffer rw", "33 32 0:30 / /a rw - fuse.coffer coffer rw",
        "34 32 0:34 / /a/b rw - tmpfs none rw", "35 34 0:35 / /a/b/c rw - tmpfs none rw",
        "36 30 0:36 / /a/b rw - tmpfs none rw")
      let layers = table.layers(of: "0:30", at: Array("/a".utf8))
      #expect(layers.map(\.id) == ["33", "32"])
      #expect(table.below(layers).map(\.id) == ["34", "35"])
      #expect(table.layers(of: "0:31", at: Array("/a".utf8)).isEmpty)
    }

    @Test func `a line that says little lies where it lies`() {
      let vault = "30 20 0:30 / /a rw - fuse.coffer coffer rw"
      // Without a source, with fields more, and with less than there ever is.
      for line in [
        "31 30 0:31 / /a rw - tmpfs  rw", "31 30 0:31 / /a rw shared:1 master:2 - tmpfs none rw", "31 30 0:31 / /a",
      ] {
        #expect(seen(table(Self.root, vault, line), "/a") == "31")
        #expect(table(Self.root, vault, line).seen(at: Array("/a".utf8))?.isVault == false)
      }
      #expect(seen(table(Self.root, #"30 20 0:30 / /a\040b\134040 rw - tmpfs none rw"#), #"/a b\040"#) == "30")
    }

    @Test func `a list without a root, or that leads in a circle, comes to an end`() {
      #expect(seen(table("30 20 0:30 / /a rw - tmpfs none rw"), "/a") == "30")
      let circle = table(
        "30 31 0:30 / /a rw - tmpfs none rw", "31 30 0:30 / /a rw - tmpfs none rw", "20 20 0:30 / / rw - tmpfs none rw")
      #expect(seen(circle, "/a") == nil)
      #expect(seen(circle, "/") == "20")
      #expect(circle.below(circle.layers(of: "0:30", at: Array("/".utf8))).isEmpty)
      _ = circle.below([circle.entries[0]])
      let twice = table(
        "30 20 0:30 / /a rw - tmpfs none rw", "31 30 0:30 / /a rw - tmpfs none rw", "30 31 0:30 / /a rw - tmpfs none rw"
      )
      #expect(twice.layers(of: "0:30", at: Array("/a".utf8)).count <= 3)
    }

    /// The kernel is the model: after each of many changes at random it is asked what lies at each place.
    @Test(
      .enabled(if: geteuid() == 0, "only root may make a name space of mounts for itself"), arguments: [1, 2, 3, 4])
    func `it is what the kernel sees, whatever was mounted, bound and moved`(_ seed: UInt64) throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-table-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let places = ["a", "a/b", "a/b/c", "d", "d/b", "e", "e/b/c"]
      var random = SeededGenerator(seed: seed)
      func any() -> String { places.randomElement(using: &random) ?? "a" }
      let changes = (0..<120).map { _ in
        let change =
          [
            "mount -t tmpfs none \(any())", "mount -t tmpfs none \(any())", "mount --bind \(any()) \(any())",
            "mount --rbind \(any()) \(any())", "mount --move \(any()) \(any())", "umount -l \(any())",
            "mount -t tmpfs none /", "mount --bind / /",
          ].randomElement(using: &random) ?? ""
        return "\(change) 2>/dev/null; mkdir -p \(places.joined(separator: " ")) 2>/dev/null; look"
      }
      let script = """
        look() {
          exec 9< / && echo "root $(grep mnt_id /proc/self/fdinfo/9)"
          for place in \(places.joined(separator: " ")); do
            [ -d "$place" ] && exec 9< "$place" && echo "at $place $(grep mnt_id /proc/self/fdinfo/9)" && exec 9<&-
          done
          cat /proc/self/mountinfo
          echo end
        }
        mount -t tmpfs none . && cd "$PWD" || exit 1
        \(changes.joined(separator: "\n"))
        """
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
      process.arguments = ["--mount", "--propagation", "private", "sh", "-c", script]
      process.currentDirectoryURL = folder
      let output = Pipe()
      process.standardOutput = output
      try process.run()
      let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
      process.waitUntilExit()
      let base = folder.resolvingSymlinksInPath().path
      let looks = text.components(separatedBy: "end\n").dropLast()
      #expect(looks.count == changes.count)
      var found = 0
      for (look, change) in zip(looks, changes) {
        let lines = look.split(separator: "\n")
        func words(_ line: Substring) -> [String] { line.split { $0 == " " || $0 == "\t" }.map(String.init) }
        let root = try #require(lines.first { $0.hasPrefix("root ") }.flatMap { words($0).last })
        let listed = lines.filter { !$0.hasPrefix("at ") && !$0.hasPrefix("root ") }
        let table = MountTable(Array(listed.joined(separator: "\n").utf8), root: root)
        for line in lines where line.hasPrefix("at ") {
          let words = words(line)
          let place = Array("\(base)/\(words[1])".utf8)
          // The mount that the place is in lies there, or above it.
          let lies = table.entries.first { $0.id == words[3] }?.place == place
          let seen = table.seen(at: place)
          #expect(seen?.id == (lies ? words[3] : nil), "\(words[1]) after \(change)\n\(look)")
          if lies { found += 1 }
        }
      }
      #expect(found > 0)
    }
  }
#endif
