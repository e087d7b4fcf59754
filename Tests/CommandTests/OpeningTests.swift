import Foundation
import Testing

/// A vault that is not there, is damaged, or is not to be opened by this person: said so, and nothing lost.
@Suite struct OpeningTests {
  let desk: Desk

  init() throws { desk = try Desk() }

  @Test func `what is no vault is told as such`() throws {
    try desk.refused(66, "there is no vault at this place", "coffer init", running: ["ls"])
    try desk.write("file", "text")
    try FileManager.default.createDirectory(atPath: desk.path("empty"), withIntermediateDirectories: false)
    for place in ["file", "empty", "out/.."] {
      try desk.refused(66, "not a vault", running: ["ls", "--vault", place], unchanged: ["empty"])
    }
    desk.environment["COFFER_VAULT"] = nil
    try desk.refused(64, "--vault", "COFFER_VAULT", running: ["ls"])
    desk.environment["COFFER_VAULT"] = desk.path("vault")

    // A vault needs an empty place and a passcode, and a refusal leaves neither folder nor secret.
    try desk.write("none", "\n")
    let outcomes = [
      (73, "not empty", try desk.run("coffer", ["init", "--vault", "logs", "--passcode-file", "passcode"])),
      (73, "not empty", try desk.run("coffer", ["init", "--vault", "file", "--passcode-file", "passcode"])),
      (64, "the passcode is empty", try desk.run("coffer", ["init", "--passcode-file", "none"])),
      (
        64, "longer than", try desk.run("coffer", ["init", "--passcode-file", "-"], input: noise(5000).map { $0 | 32 })
      ),
      (64, "--passcode-file", try desk.run("coffer", ["init"])),
      (66, "absent: no such file", try desk.run("coffer", ["init", "--passcode-file", "absent"])),
      (
        64, "outside the vault",
        try desk.run("coffer", ["init", "--key-store", "vault/keys", "--passcode-file", "passcode"])
      ),
    ]
    for (code, says, outcome) in outcomes { expect(outcome, code: Int32(code), says: [says]) }
    #expect(!desk.exists("vault"))
    #expect(desk.listing("keys", "home").isEmpty)

    try desk.done("init")
    let before = desk.listing("vault", "keys")
    try desk.refused(73, "not empty", running: ["init"])
    #expect(desk.listing("vault", "keys") == before)
    try desk.done("ls")
  }

  @Test func `what can be known without a passcode is said before one is asked for`() throws {
    try desk.makeVault(withRecoveryKey: false)
    try desk.done("put", "passcode", "/file")
    for (folder, permissions) in [("open", 0o755), ("out/file", 0o700)] {
      try FileManager.default.createDirectory(
        atPath: desk.path(folder), withIntermediateDirectories: false, attributes: [.posixPermissions: permissions])
    }
    let before = desk.listing("vault/objects", "keys", "out", "open")
    // There is neither a file nor a terminal to take one from.
    for (code, says, arguments) in [
      (73, "not empty", ["init"]), (73, "not empty", ["init", "--vault", "passcode"]),
      (73, "already", ["init", "--vault", "new", "--recovery-key-file", "passcode"]),
      (66, "no such folder", ["init", "--vault", "new", "--recovery-key-file", "absent/key"]),
      (74, "chmod 700", ["init", "--vault", "new", "--key-store", "open"]),
      (66, "absent: no such folder", ["get", "/file", "absent/x"]),
      (66, "absent: no such folder", ["export", "--rncryptor", "/file", "absent/x"]),
      (73, "folder of the same name", ["export", "--rncryptor", "/file", "out"]),
      (66, "there is no vault", ["export", "--rncryptor", "--vault", "absent", "/file", "x"]),
      (73, "out: the folder is not empty", ["backup", "out"]),
      (73, "new: no such folder", ["backup", "new/below"]),
    ] {
      expect(try desk.run("coffer", arguments), code: Int32(code), says: [says])
    }
    #expect(!desk.exists("new") && !desk.exists("x"))
    #expect(desk.listing("vault/objects", "keys", "out", "open") == before)
    // The password is asked for last: when the file may be taken out.
    try desk.refused(66, "no such file", running: ["export", "--rncryptor", "/absent", "x"])
    try desk.refused(64, "RNCryptor password", running: ["export", "--rncryptor", "/file", "x"])
  }

  @Test func `a passcode comes from a file or standard input, and only the right one opens`() throws {
    try desk.makeVault()
    let content = noise(100_000)
    // The passcode is the first line; the rest is the file that is stored.
    let both = Array("\(Desk.passcode)\n".utf8) + content
    let stored = try desk.run("coffer", ["put", "-", "/rest", "--passcode-file", "-"], input: both)
    #expect(stored.code == 0, "\(stored.errors)")
    #expect(try desk.done("cat", "/rest").bytes == content)
    let windows = try desk.run("coffer", ["ls", "--passcode-file", "-"], input: Array("\(Desk.passcode)\r\n".utf8))
    #expect(windows.output == "rest\n")

    // None can be empty: that is a mistake, and no try.
    try desk.write("empty", "")
    for arguments in [["ls"], ["put", "empty", "/rest"]] {
      expect(try desk.run("coffer", arguments + ["--passcode-file", "empty"]), code: 64, says: ["empty"])
    }
    for wrong in ["correct horse battery stapl", "correct horse battery staple ", "Correct horse battery staple"] {
      try desk.write("wrong", wrong)
      for arguments in [["ls"], ["get", "/rest", "out"], ["put", "wrong", "/rest"], ["rm", "/rest"]] {
        let outcome = try desk.run("coffer", arguments + ["--passcode-file", "wrong"])
        expect(outcome, code: 77, says: ["the passcode is wrong"])
      }
      expect(
        try desk.run("coffer", ["ls", "--passcode-file", "-"], input: Array(wrong.utf8)), code: 77,
        says: ["the passcode is wrong"])
      break
    }
    #expect(desk.listing("out").isEmpty)
    expect(try desk.run("coffer", ["ls", "--passcode-file", "absent"]), code: 66, says: ["absent: no such file"])
    expect(try desk.run("coffer", ["ls"]), code: 64, says: ["--passcode-file"])
    #expect(try desk.done("cat", "/rest").bytes == content)
  }

  @Test func `a vault in use is told as such, with who uses it`() throws {
    try desk.makeVault()
    let holder = try desk.start("coffer", ["put", "-", "/x", "--passcode-file", "passcode"])
    // More than a pipe holds: when it is taken, the vault is open.
    #expect(holder.send(noise(1 << 20)))
    for arguments in [["ls"], ["get", "/x", "out"], ["put", "passcode", "/y"]] {
      try desk.refused(
        75, "in use by process \(holder.processID)", "try again", running: arguments, unchanged: ["out"])
    }
    #expect(holder.wait().code == 0)
    #expect(try desk.done("ls").output == "x\n")
  }

  /// One way to damage what is stored, and how it must be told.
  struct Damage {
    let what: String
    let file: String
    var command = ["ls"]
    let code: Int32
    let says: String
    let change: (inout [UInt8]) -> Void
  }

  @Test func `damage is told as such, leaves nothing, and loses nothing`() throws {
    let id = try desk.makeVault()
    let (small, large) = (noise(1000), noise(300_000, seed: 2))
    try desk.write("small", small)
    try desk.write("large", large)
    try desk.done("put", "small", "large", "/")
    let objectPath = String(try #require(desk.objects().first).prefix { $0 != " " })
    try desk.copy("vault", to: "vault-before")
    try desk.copy("keys", to: "keys-before")

    let get = ["get", "/small", "/large", "out"]
    let json = "keybag.json"
    let damages = [
      Damage(what: "half a keybag", file: "vault/keybag.json", code: 65, says: json) { $0.removeLast($0.count / 2) },
      Damage(what: "an empty keybag", file: "vault/keybag.json", code: 65, says: json) { $0 = [] },
      Damage(what: "a huge keybag", file: "vault/keybag.json", code: 65, says: json) { $0 += noise(1 << 20) },
      Damage(what: "another slot", file: "vault/keybag.json", code: 65, says: json) { Self.alter("passcodeSlot", &$0) },
      Damage(what: "another code", file: "vault/keybag.json", code: 65, says: json) { Self.alter("masterCode", &$0) },
      Damage(what: "another salt", file: "vault/keybag.json", code: 65, says: json) { Self.alter("salt", &$0) },
      Damage(what: "an endless derivation", file: "vault/keybag.json", code: 65, says: json) {
        Self.replace("\"blockSize\" : 8", "\"blockSize\" : 800000000", &$0)
      },
      Damage(what: "a newer version", file: "vault/coffer.json", code: 65, says: "newer version of Coffer") {
        Self.replace("\"version\": 0", "\"version\": 1", &$0)
      },
      Damage(what: "a space more", file: "vault/coffer.json", code: 65, says: "coffer.json") { $0.append(32) },
      Damage(what: "no description", file: "vault/coffer.json", code: 66, says: "not a vault") { $0 = [] },
      Damage(what: "another vault's id", file: "vault/coffer.json", code: 77, says: "key store holds no secret") {
        Self.replace(id.prefix(4), id.hasPrefix("0000") ? "1111" : "0000", &$0)
      },
      Damage(what: "an empty index", file: "vault/index.sqlite", code: 65, says: "damaged") { $0 = [] },
      Damage(what: "half an index", file: "vault/index.sqlite", code: 65, says: "damaged") {
        $0.removeLast($0.count / 2)
      },
      Damage(what: "no index but noise", file: "vault/index.sqlite", code: 65, says: "damaged") {
        $0 = noise($0.count)
      },
      Damage(what: "a bit in the index's header", file: "vault/index.sqlite", code: 65, says: "damaged") {
        $0[70] ^= 1
      },
      Damage(what: "noise behind the index's first page", file: "vault/index.sqlite", code: 65, says: "damaged") {
        $0.replaceSubrange(8192..., with: noise($0.count - 8192))
      },
      Damage(
        what: "a bit in each page of the index", file: "vault/index.sqlite", command: get, code: 65, says: "damaged"
      ) {
        for offset in stride(from: 8192 + 8000, to: $0.count, by: 8192) { $0[offset] ^= 16 }
      },
      Damage(what: "half an object", file: objectPath, command: get, code: 65, says: "damaged") {
        $0.removeLast($0.count / 2)
      },
      Damage(what: "a bit in an object", file: objectPath, command: get, code: 65, says: "damaged") {
        $0[$0.count / 2] ^= 1
      },
      Damage(what: "an object's blocks exchanged", file: objectPath, command: get, code: 65, says: "damaged") {
        let first = Array($0[..<4096])
        $0.replaceSubrange(..<4096, with: $0[4096..<8192])
        $0.replaceSubrange(4096..<8192, with: first)
      },
      Damage(what: "half a device secret", file: "keys/\(id)/device-secret", code: 65, says: "damaged") {
        $0.removeLast(16)
      },
      Damage(what: "another device secret", file: "keys/\(id)/device-secret", code: 65, says: json) { $0[0] ^= 1 },
    ]
    for damage in damages {
      let original = try desk.read(damage.file)
      var bytes = original
      damage.change(&bytes)
      try #require(bytes != original, "\(damage.what) is no damage")
      try desk.write(damage.file, bytes)
      let outcome = try desk.run("coffer", damage.command + ["--passcode-file", "passcode"])
      #expect(outcome.code == damage.code, "\(damage.what): \(outcome.errors)")
      #expect(outcome.errors.contains(damage.says), "\(damage.what): \(outcome.errors)")
      #expect(!outcome.errors.contains("internal error"), "\(damage.what): \(outcome.errors)")
      // What was whole may have come out, whole; nothing else.
      for (name, content) in [("out/small", small), ("out/large", large)] where desk.exists(name) {
        #expect(try desk.read(name) == content, "\(damage.what)")
        try desk.remove(name)
      }
      #expect(desk.listing("out").isEmpty, "\(damage.what)")
      try desk.write(damage.file, original)
    }
    // With the bytes back, all is as it was: nothing was made worse in between.
    #expect(try desk.done("cat", "/small").bytes == small)
    #expect(try desk.done("cat", "/large").bytes == large)

    try removals(id: id, objectPath, large)
  }

  private func removals(id: String, _ object: String, _ large: [UInt8]) throws {
    for (file, command, code, says) in [
      ("vault/keybag.json", ["ls"], 65, "keybag.json"), ("vault/coffer.json", ["ls"], 66, "not a vault"),
      ("vault/index.sqlite", ["ls"], 65, "index"), ("vault/objects", ["ls"], 65, "objects"),
      (object, ["get", "/large", "out"], 65, "missing"), ("keys", ["ls"], 77, "--key-store"),
      ("keys/\(id)/device-secret", ["ls"], 77, "--key-store"),
      // Without its anchor a vault may be an old copy: it can be read, and not changed.
      ("keys/\(id)/anchor", ["put", "small", "/new"], 65, "it can be read, but not changed"),
    ] {
      try FileManager.default.moveItem(atPath: desk.path(file), toPath: desk.path("away"))
      let outcome = try desk.run("coffer", command + ["--passcode-file", "passcode"])
      #expect(outcome.code == Int32(code), "\(file): \(outcome.errors)")
      #expect(outcome.errors.contains(says), "\(file): \(outcome.errors)")
      if file.hasSuffix("anchor") { #expect(try desk.done("cat", "/large").bytes == large) }
      #expect(desk.listing("out").isEmpty)
      if desk.exists(file) { try desk.remove(file) }
      try FileManager.default.moveItem(atPath: desk.path("away"), toPath: desk.path(file))
    }
    #expect(try desk.done("cat", "/large").bytes == large)

    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: desk.path("keys"))
    try desk.refused(74, "chmod 700", running: ["ls"])
    try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: desk.path("keys"))

    // An older copy is read, and refuses changes; the present one, put back, is whole.
    try desk.done("put", "small", "/newer")
    try FileManager.default.moveItem(atPath: desk.path("vault"), toPath: desk.path("vault-now"))
    try desk.copy("vault-before", to: "vault")
    try desk.refused(65, "not changed", running: ["rm", "/small"])
    let old = try desk.done("cat", "/large")
    #expect(old.bytes == large && old.errors.contains("older than the newest state"))
    try desk.remove("vault")
    try FileManager.default.moveItem(atPath: desk.path("vault-now"), toPath: desk.path("vault"))
    #expect(try desk.done("ls").output == "large\nnewer\nsmall\n")
    try desk.done("rm", "/newer")
  }

  /// Changes one hexadecimal digit of a member of a JSON text.
  private static func alter(_ member: String, _ bytes: inout [UInt8]) {
    guard let range = Data(bytes).range(of: Data("\"\(member)\" : \"".utf8)) else { return }
    bytes[range.upperBound] = bytes[range.upperBound] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
  }

  private static func replace(_ old: some StringProtocol, _ new: String, _ bytes: inout [UInt8]) {
    bytes = Array(String(decoding: bytes, as: UTF8.self).replacingOccurrences(of: old, with: new).utf8)
  }
}
