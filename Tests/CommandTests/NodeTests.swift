import CofferFiles
import CofferSystem
import CofferVault
import Foundation
import Testing

/// Links, fifos and sockets, as a mounted vault stores them: every command knows what they are, and none follows or
/// waits for one.
@Suite struct NodeTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("mkdir", "/folder")
    try desk.done("put", "-", "/file", input: noise(100_000))
    try desk.withVault { vault in
      _ = try vault.link(VaultPath("file"), to: VaultPath("folder/again"))
      try vault.makeSymbolicLink(at: VaultPath("to-file"), to: Array("file".utf8))
      try vault.makeSymbolicLink(at: VaultPath("to-folder"), to: Array("/folder".utf8))
      _ = try vault.makeSpecial(.fifo, Array("fifo".utf8), in: .rootFolder, NewNode(permissions: 0o622))
      _ = try vault.makeSpecial(.socket, Array("socket".utf8), in: .rootFolder, NewNode(permissions: 0o600))
      let sparse = try vault.createFile(at: VaultPath("sparse"))
      try sparse.truncate(to: 1 << 30)
      try sparse.close()
      _ = try vault.setAttributes(
        AttributeChanges(
          permissions: 0o4755, user: 12, group: 34, accessed: .at(Timestamp(seconds: 1, nanoseconds: 2)),
          modified: .at(Timestamp(seconds: -1, nanoseconds: 999_999_999)),
          created: .at(Timestamp(seconds: 981_173_106, nanoseconds: 123_456_789))),
        at: VaultPath("file"))
    }
  }

  @Test func `listings show kind, target, owner, links and times`() throws {
    let lines = try desk.done("ls", "-lR").output.split(separator: "\n").map(String.init)
    #expect(lines.map { $0.prefix(1) } == ["p", "-", "d", "-", "s", "-", "l", "l"].map { $0[...] })
    #expect(
      lines[1].hasPrefix(
        "- 04755 2 12:34 complete             \(String(repeating: " ", count: 8))100000 1969-12-31T23:59:59Z file"))
    #expect(lines[3].hasPrefix("- 04755 2 12:34 ") && lines[3].hasSuffix(" folder/again"))
    #expect(lines[6].hasSuffix(" to-file -> file") && lines[7].hasSuffix(" to-folder -> /folder"))

    let listed = try #require(try json("ls", "-R") as? [[String: Any]])
    #expect(
      listed.map { $0["kind"] as? String } == ["fifo", "file", "folder", "file", "socket", "file", "link", "link"])
    let (file, again) = (listed[1], listed[3])
    for key in ["number", "links", "user", "group"] { #expect(file[key] as? Int == again[key] as? Int) }
    #expect(file["links"] as? Int == 2 && file["user"] as? Int == 12 && file["group"] as? Int == 34)
    #expect(file["accessed"] as? String == "1970-01-01T00:00:01.000000002Z")
    #expect(file["modified"] as? String == "1969-12-31T23:59:59.999999999Z")
    #expect(file["created"] as? String == "2001-02-03T04:05:06.123456789Z")
    #expect((file["changed"] as? String)?.hasSuffix("Z") == true)
    #expect(listed[5]["size"] as? Int == 1 << 30 && listed[5]["stored"] as? Int == 0)
    #expect(listed[6]["target"] as? String == "file")

    let text = try desk.done("stat", "/file").output
    for line in [
      "kind        file", "owner       12:34", "links       2", "modified    1969-12-31T23:59:59Z",
      "accessed    1970-01-01T00:00:01Z", "created     2001-02-03T04:05:06Z",
    ] {
      #expect(text.contains("\(line)\n"), "\(text)")
    }
    #expect(try desk.done("stat", "/sparse").output.contains("size        1073741824, stored 0\n"))
    #expect(try desk.done("stat", "/to-folder").output.contains("kind        link\ntarget      /folder\n"))
    #expect(try desk.done("stat", "/fifo").output.contains("kind        fifo\n"))
    // A listing of a link is the link, whatever it leads to.
    #expect(try desk.done("ls", "/to-folder").output == "to-folder\n")
    #expect((try json("stat", "/fifo") as? [String: Any])?["permissions"] as? String == "0622")
    try desk.done("verify", "--deep")
  }

  @Test func `content is taken from files only, and nobody waits for a fifo`() throws {
    for path in ["/to-file", "/fifo", "/socket"] {
      try desk.refused(64, "not the kind of file", running: ["cat", path])
      try desk.refused(64, "not the kind of file", running: ["get", path, "-"])
    }
    for path in ["/fifo", "/socket"] {
      try desk.refused(73, "1 item(s) were not written", running: ["get", path, "out"], unchanged: ["out"])
    }
    try desk.refused(66, running: ["cat", "/to-folder/again"])
    try desk.refused(66, running: ["put", "passcode", "/to-folder/x"])
    try desk.refused(66, running: ["mkdir", "-p", "/to-folder/x"])
    try desk.refused(73, running: ["mkdir", "/fifo"])
    // Both names of one file come out as two.
    try desk.done("rm", "/sparse", "/fifo", "/socket")
    try desk.done("get", "-r", "/", "out")
    #expect(try desk.read("out/file") == noise(100_000))
    #expect(try desk.read("out/folder/again") == noise(100_000))
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: desk.path("out/to-folder")) == "/folder")
  }

  @Test func `names are moved, replaced and removed one by one`() throws {
    // A file put in a name's place leaves the other name as it was.
    try desk.done("put", "-", "/folder/again", input: noise(20))
    #expect(try desk.done("cat", "/file").bytes == noise(100_000))
    #expect(try desk.done("stat", "/file").output.contains("links       1\n"))
    try desk.withVault { _ = try $0.link(VaultPath("file"), to: VaultPath("third")) }
    try desk.done("rm", "/file")
    #expect(try desk.done("cat", "/third").bytes == noise(100_000))
    // A link is moved and removed, not what it leads to.
    try desk.done("mv", "/to-folder", "/folder")
    #expect(try desk.done("ls", "-R", "/folder").output == "again\nto-folder\n")
    try desk.done("mv", "/third", "/folder/to-folder")
    #expect(try desk.done("cat", "/folder/to-folder").bytes == noise(100_000))
    try desk.done("put", "-", "/to-file", input: noise(10))
    #expect(try desk.done("cat", "/to-file").bytes == noise(10))
    try desk.done("put", "-", "/fifo", input: noise(10))
    #expect(try desk.done("stat", "/fifo").output.contains("kind        file\n"))
    try desk.done("mv", "/socket", "/folder/socket")
    try desk.done("rm", "-r", "/folder/socket", "/fifo", "/to-file", "/sparse")
    #expect(try desk.done("ls", "-R").output == "folder/\nfolder/again\nfolder/to-folder\n")
    try desk.done("verify", "--deep")
  }

  private func json(_ arguments: String...) throws -> Any {
    let outcome = try desk.run("coffer", arguments + ["--json", "--passcode-file", "passcode"])
    #expect(outcome.code == 0, "\(outcome.errors)")
    return try JSONSerialization.jsonObject(with: Data(outcome.bytes))
  }
}
