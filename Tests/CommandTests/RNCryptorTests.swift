import Foundation
import Glibc
import Testing

/// Files that other programs encrypted in RNCryptor's format, and files for them.
@Suite struct RNCryptorTests {
  let desk: Desk
  static let password = "pä🔑sswörd"

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.write("password", Self.password + "\n")
    try desk.write("two-keys", noise(64, seed: 7))
  }

  /// The secrets of both forms: the option, its file, and what the independent program calls it.
  static let forms = [
    ["--rncryptor-password-file", "password", "password"], ["--rncryptor-key-file", "two-keys", "keys"],
  ]

  // MARK: With the independent program

  @Test(.enabled(if: IndependentRNCryptor.isInstalled, IndependentRNCryptor.missing), arguments: forms)
  func `what the one encrypts the other opens`(form: [String]) throws {
    for size in [0, 15, 16, 17, 3_000_001] {
      let content = noise(size, seed: UInt64(size))
      try desk.write("content", content)
      let sealed = try IndependentRNCryptor.run("seal", form[2], form[1], from: "content", to: "sealed", at: desk)
      #expect(sealed.code == 0, "\(sealed.errors)")
      try desk.done("import", "--rncryptor", form[0], form[1], "sealed", "/file")
      #expect(try desk.done("cat", "/file").bytes == content, "\(size)")

      try desk.done("export", "--rncryptor", form[0], form[1], "/file", "exported")
      let opened = try IndependentRNCryptor.run("open", form[2], form[1], from: "exported", to: "opened", at: desk)
      #expect(opened.code == 0, "\(opened.errors)")
      #expect(try desk.read("opened") == content, "\(size)")
    }
    // The control: it does not open everything.
    var changed = try desk.read("exported")
    changed[40] ^= 1
    try desk.write("changed", changed)
    #expect(try IndependentRNCryptor.run("open", form[2], form[1], from: "changed", to: "opened", at: desk).code != 0)
  }

  // MARK: Ours alone

  @Test(arguments: forms) func `out and in again, through files and pipes`(form: [String]) throws {
    let content = noise(1_000_003)
    try desk.done("put", "-", "/file", input: content)
    try desk.done("export", "--rncryptor", form[0], form[1], "/file", "out")
    try desk.done("import", "--rncryptor", form[0], form[1], "out/file", "/second")
    #expect(try desk.done("cat", "/second").bytes == content)
    let piped = try desk.done("export", "--rncryptor", form[0], form[1], "/second", "-").bytes
    #expect(piped != (try desk.read("out/file")))
    try desk.done("mkdir", "/folder")
    try desk.done("import", "--rncryptor", form[0], form[1], "-", "/folder/third", input: piped)
    #expect(try desk.done("cat", "/folder/third").bytes == content)
    // Into a folder of the vault under its own name, in place of what has it.
    try desk.done("put", "password", "/folder/file")
    try desk.done("import", "--rncryptor", form[0], form[1], "out/file", "/folder")
    #expect(try desk.done("cat", "/folder/file").bytes == content)
    // Nobody else reads what was exported, and a file that has the name is replaced.
    let attributes = try FileManager.default.attributesOfItem(atPath: desk.path("out/file"))
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    try desk.done("export", "--rncryptor", form[0], form[1], "/second", "out/file")
    #expect(desk.listing("out").count == 1)
    #expect(try desk.done("verify", "--deep", "--json").output.contains("true"))
  }

  @Test func `the password and the content come from one standard input`() throws {
    try desk.done("put", "-", "/file", input: noise(5000))
    let data = try desk.done(
      "export", "--rncryptor", "--rncryptor-password-file", "password", "/file", "-"
    ).bytes
    try desk.done(
      "import", "--rncryptor", "--rncryptor-password-file", "-", "-", "/second",
      input: Array((Self.password + "\n").utf8) + data)
    #expect(try desk.done("cat", "/second").bytes == noise(5000))
  }

  @Test func `a password is asked for, twice where it is new`() throws {
    try desk.done("put", "-", "/file", input: noise(500))
    let (first, second) = ("New RNCryptor password: ", "The same again: ")
    let exported = try desk.onTerminal(
      ["export", "--rncryptor", "/file", "out/file"], answering: [(first, "typed"), (second, "typed")])
    #expect(exported == 0)
    #expect(
      try desk.onTerminal(["import", "--rncryptor", "out/file", "/second"], answering: [("password: ", "typed")]) == 0)
    #expect(try desk.done("cat", "/second").bytes == noise(500))
    let mistyped = try desk.onTerminal(
      ["export", "--rncryptor", "/file", "out/third"], answering: [(first, "one"), (second, "another")])
    #expect(mistyped == 64)
    #expect(desk.listing("out").count == 1)
  }

  @Test(arguments: [40, 600_000]) func `a wrong password and changed bytes are 65, and nothing stays`(size: Int) throws
  {
    try desk.done("put", "-", "/file", input: noise(size))
    try desk.done("export", "--rncryptor", "--rncryptor-password-file", "password", "/file", "out/file")
    try desk.write("wrong", "password\n")
    let data = try desk.read("out/file")
    let objects = desk.objects()
    func refused(_ file: String, _ says: String, password: String = "password") throws {
      try desk.refused(
        65, says, running: ["import", "--rncryptor", "--rncryptor-password-file", password, file, "/refused"])
      #expect(desk.objects() == objects)
    }
    let wrong = "the password (or the keys) is wrong, or the file was changed"
    try refused("out/file", wrong, password: "wrong")
    for place in [10, 40, data.count / 2, data.count - 1] {
      var changed = data
      changed[place] ^= 1
      try desk.write("changed", changed)
      try refused("changed", wrong)
    }
    for count in [0, 33, 66, data.count - 16, data.count - 1] {
      try desk.write("changed", Array(data.prefix(count)))
      try refused("changed", "")
    }
    try desk.write("changed", data + [0])
    try refused("changed", "something was added")
    for (version, says) in [(1, "version 1 is not read"), (4, "version 4 is not read"), (77, "not RNCryptor's format")]
    {
      try desk.write("changed", [UInt8(version)] + data.dropFirst())
      try refused("changed", says)
    }
    #expect(try desk.done("ls").output == "file\n")
    #expect(desk.objects() == objects)
    // A name that was there keeps what it had.
    try desk.refused(
      65, running: ["import", "--rncryptor", "--rncryptor-password-file", "wrong", "out/file", "/file"])
    #expect(try desk.done("cat", "/file").bytes == noise(size))
  }

  @Test func `usage is told as such`() throws {
    try desk.done("put", "password", "/file")
    try desk.done("export", "--rncryptor", "--rncryptor-password-file", "password", "/file", "with-password")
    try desk.done("export", "--rncryptor", "--rncryptor-key-file", "two-keys", "/file", "with-keys")
    let digits = noise(64, seed: 7).map { String(format: "%02x", $0) }.joined()
    try desk.write("digits", digits + "\n")
    try desk.done("import", "--rncryptor", "--rncryptor-key-file", "digits", "with-keys", "/from-digits")
    try desk.write("empty", "\n")
    try desk.write("short", noise(63))
    try desk.done("mkdir", "/folder")
    let password = ["--rncryptor", "--rncryptor-password-file", "password"]
    let keys = ["--rncryptor", "--rncryptor-key-file", "two-keys"]
    let cases: [(Int32, String, [String])] = [
      (64, "encrypted with keys", ["import"] + password + ["with-keys", "/x"]),
      (64, "encrypted with a password", ["import"] + keys + ["with-password", "/x"]),
      (
        64, "password is empty", ["import", "--rncryptor", "--rncryptor-password-file", "empty", "with-password", "/x"]
      ),
      (64, "password is empty", ["export", "--rncryptor", "--rncryptor-password-file", "empty", "/file", "x"]),
      (65, "not two keys", ["import", "--rncryptor", "--rncryptor-key-file", "short", "with-keys", "/x"]),
      (66, "no such file", ["import", "--rncryptor", "--rncryptor-key-file", "absent", "with-keys", "/x"]),
      (66, "no such file", ["import"] + keys + ["absent", "/x"]),
      (66, "no such file", ["export"] + keys + ["/absent", "x"]),
      (66, "no such folder", ["export"] + keys + ["/file", "absent/x"]),
      (66, "coffer mkdir", ["import"] + keys + ["with-keys", "/absent/"]),
      (64, "only a file", ["export"] + keys + ["/folder", "x"]),
      (64, "it is a folder", ["import"] + keys + ["out", "/x"]),
      (64, "no name", ["import"] + keys + ["-", "/folder"]),
      (64, "not both", ["import"] + keys + ["--rncryptor-password-file", "password", "with-keys", "/x"]),
      (64, "Name the format", ["import", "--rncryptor-key-file", "two-keys", "with-keys", "/x"]),
      (64, "Name the format", ["export", "--rncryptor-key-file", "two-keys", "/file", "x"]),
    ]
    for (code, says, arguments) in cases {
      try desk.refused(code, says, running: arguments, unchanged: ["vault/objects", "out"])
      #expect(!desk.exists("x"))
    }
    #expect(try desk.done("ls").output == "file\nfolder/\nfrom-digits\n")
  }

  @Test func `an import that a signal ends leaves nothing`() throws {
    try desk.done("put", "-", "/large", input: noise(16 << 20))
    try desk.done("export", "--rncryptor", "--rncryptor-key-file", "two-keys", "/large", "sealed")
    let data = try desk.read("sealed")
    for signal in [SIGINT, SIGTERM, SIGKILL] {
      let before = desk.objects()
      let program = try desk.start(
        "coffer",
        [
          "import", "--rncryptor", "--rncryptor-key-file", "two-keys", "-", "/interrupted", "--passcode-file",
          "passcode",
        ])
      // More than a pipe and the program's buffers hold: when it is taken, some of it is sealed and written.
      #expect(program.send(Array(data.prefix(8 << 20))))
      #expect(desk.objects().count > before.count)
      program.signal(signal)
      // The rest, and so the whole, would be there.
      _ = program.send(Array(data.dropFirst(8 << 20)))
      let outcome = program.wait()
      #expect(outcome.code == 128 + signal, "\(outcome.errors)")
      #expect(try desk.done("ls").output == "large\n")
      #expect(desk.objects() == before)
    }
  }

  @Test func `an export that a signal ends leaves nothing`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("tree"), withIntermediateDirectories: false)
    try desk.write("tree/large", [1])
    #expect(truncate(desk.path("tree/large"), 1 << 28) == 0)
    try desk.done("put", "tree/large", "/")
    let program = try desk.start(
      "coffer",
      ["export", "--rncryptor", "--rncryptor-key-file", "two-keys", "/large", "out", "--passcode-file", "passcode"])
    // The copy has its hidden name until it is whole.
    while desk.listing("out").isEmpty { sched_yield() }
    program.signal(SIGINT)
    let outcome = program.wait()
    #expect(outcome.code == 130, "\(outcome.errors)")
    #expect(desk.listing("out").isEmpty)
  }

  @Test func `a company's policy is asked`() async throws {
    try desk.done("put", "password", "/file")
    try desk.done("export", "--rncryptor", "--rncryptor-key-file", "two-keys", "/file", "sealed")
    let server = try RunningServer(at: desk)
    try desk.done("enroll", server.url, server.enrollmentCode())
    try desk.refused(
      77, "saveCopy", "rule settings:ownerActions",
      running: ["export", "--rncryptor", "--rncryptor-key-file", "two-keys", "/file", "out"], unchanged: ["out"])
    try desk.refused(
      77, "saveCopy", running: ["export", "--rncryptor", "--rncryptor-key-file", "two-keys", "/file", "-"])
    try desk.done("import", "--rncryptor", "--rncryptor-key-file", "two-keys", "sealed", "/allowed")
    try await server.allowOwner(["view"])
    try desk.done("policy", "refresh")
    try desk.refused(
      77, "import", "rule settings:ownerActions",
      running: ["import", "--rncryptor", "--rncryptor-key-file", "two-keys", "sealed", "/second"],
      unchanged: ["vault/objects"])
    #expect(server.stop().code == 0)
  }

  @Test func `--json tells what was stored and written`() throws {
    try desk.done("put", "-", "/file", input: noise(300))
    let exported = try desk.done("export", "--rncryptor", "--rncryptor-key-file", "two-keys", "/file", "out", "--json")
    let imported = try desk.done(
      "import", "--rncryptor", "--rncryptor-key-file", "two-keys", "out/file", "/second", "--json")
    for (outcome, path) in [(exported, "/file"), (imported, "/second")] {
      let object = try #require(try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any])
      #expect(object["path"] as? String == path)
      #expect(object["size"] as? Int == 300)
    }
  }
}
