import Foundation
import Glibc
import Testing

/// What goes in comes out: bytes, names, permissions and times.
@Suite struct AttributeTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
  }

  @Test func `a tree comes back as it was`() throws {
    let made = try desk.run(
      "/bin/sh",
      [
        "-c",
        """
        mkdir -p tree/deep/er tree/empty 'tree/a space' && : > tree/none && printf x > tree/one &&
        head -c 4096 /dev/urandom > tree/inline && head -c 4097 /dev/urandom > tree/object &&
        head -c 70000 /dev/urandom > tree/deep/er/blocks && head -c 65536 /dev/zero > 'tree/a space/zeros' &&
        chmod 0754 tree/one && chmod 0400 tree/none && chmod 0750 tree/deep && chmod 0644 tree/object &&
        touch -d '2001-02-03 04:05:06.123456789 UTC' tree/one tree/deep/er/blocks tree/empty &&
        touch -d '1960-01-01 00:00:00.5 UTC' tree/none && touch -d '2100-01-01 00:00:00.000000001 UTC' tree/inline
        """,
      ])
    try #require(made.code == 0, "\(made.errors)")
    try desk.done("put", "-r", "tree", "/")
    try desk.done("get", "-r", "/tree", "out")
    let difference = try desk.run("/usr/bin/diff", ["-r", "tree", "out/tree"])
    #expect(difference.code == 0 && difference.bytes.isEmpty, "\(difference.output)")
    let describe = { (folder: String) in
      try self.desk.run("/bin/sh", ["-c", "cd \(folder) && find . -type f -printf '%p %m %T@ %s\\n' | sort"]).output
    }
    let files = try describe("tree")
    #expect(files.contains("./one 754 981173106.1234567890 1\n"))
    #expect(try describe("out/tree") == files)
    #expect(try permissions("out/tree/deep") == 0o750)

    // Into an existing folder, and again over what is there: the same once more.
    try desk.done("put", "-r", "tree", "/")
    try desk.done("get", "-r", "/tree", "out")
    #expect(try describe("out/tree") == files)
    try desk.done("get", "-r", "/", "out/tree")
    #expect(try describe("out/tree/tree") == files)

    // No rights are lent to others by a file that comes out of a vault.
    try desk.write("setuid", "#!/bin/sh\n")
    #expect(chmod(desk.path("setuid"), 0o6755) == 0)
    try desk.done("put", "setuid", "/")
    try desk.done("get", "/setuid", "out")
    #expect(try permissions("out/setuid") == 0o755)
  }

  @Test func `a stream comes back as it was`() throws {
    let bytes = noise(8 << 20)
    try desk.done("put", "-", "/stream", input: bytes)
    #expect(try desk.done("get", "/stream", "-").bytes == bytes)
    #expect(try desk.done("cat", "/stream").bytes == bytes)
    try desk.done("get", "/stream", "out/as another name")
    #expect(try desk.read("out/as another name") == bytes)
    #expect(try permissions("out/as another name") == 0o600)
    try desk.done("put", "-", "/nothing")
    #expect(try desk.done("cat", "/nothing").bytes.isEmpty)
    // Replaced, the old content and its object are gone.
    try desk.done("put", "-", "/stream", input: [1])
    #expect(try desk.done("cat", "/stream").bytes == [1])
    #expect(desk.objects().isEmpty)
  }

  @Test func `fifos and devices in a tree are named as left out`() throws {
    let made = try desk.run("/bin/sh", ["-c", "mkdir tree && mkfifo tree/fifo && echo 1 > tree/file"])
    try #require(made.code == 0)
    let outcome = try desk.coffer("put", "-r", "tree", "/")
    #expect(outcome.code == 73)
    #expect(outcome.errors.contains("1 item(s) were not stored"))
    #expect(try desk.done("ls", "-R").output == "tree/\ntree/file\n")
  }

  @Test func `links in a tree come back as links, and nothing goes through them`() throws {
    let made = try desk.run(
      "/bin/sh",
      [
        "-c",
        """
        mkdir -p tree/folder target && echo 1 > tree/folder/file && ln -s folder/file tree/link &&
        ln -s ../../target tree/folder/out && ln -s /nowhere/at/all tree/dangling && ln -s . tree/folder/self
        """,
      ])
    try #require(made.code == 0, "\(made.errors)")
    let describe = { (folder: String) in
      try self.desk.run("/bin/sh", ["-c", "cd \(folder) && find . -printf '%p %y %l\\n' | sort"]).output
    }
    let expected = try describe("tree")
    #expect(expected.contains("./link l folder/file\n"))
    for _ in 0..<2 {
      try desk.done("put", "-r", "tree", "/")
      try desk.done("get", "-r", "/tree", "out")
      #expect(try describe("out/tree") == expected)
    }
    #expect(try desk.done("ls", "-l", "/tree/link").output.hasPrefix("l 0777 1 \(geteuid()):\(getegid()) "))
    #expect(try desk.done("ls", "-l", "/tree/link").output.hasSuffix(" link -> folder/file\n"))
    #expect(try desk.done("stat", "/tree/link").output.contains("target      folder/file\n"))
    #expect(try desk.done("stat", "--json", "/tree/link").output.contains("\"target\" : \"folder/file\""))
    try desk.done("get", "/tree/dangling", "out")
    #expect(try describe("out").contains("./dangling l /nowhere/at/all\n"))

    // Where a link was restored, a folder of the same name is not put behind it.
    try desk.done("rm", "/tree/folder/out")
    try desk.done("mkdir", "/tree/folder/out")
    try desk.write("text", "text\n")
    try desk.done("put", "text", "/tree/folder/out/text")
    let outcome = try desk.coffer("get", "-r", "/tree", "out")
    #expect(outcome.code != 0)
    #expect(desk.listing("target").isEmpty)
    // And a file takes the link's place, not that of what it leads to.
    try desk.done("rm", "-r", "/tree/link")
    try desk.done("put", "text", "/tree/link")
    try desk.done("get", "/tree/link", "out/tree/link")
    #expect(try desk.read("out/tree/link") == desk.read("text"))
    #expect(try desk.read("out/tree/folder/file") == Array("1\n".utf8))
  }

  private func permissions(_ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: desk.path(name))[.posixPermissions] as? Int
  }
}
