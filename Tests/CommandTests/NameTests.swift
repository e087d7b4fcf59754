import Foundation
import Glibc
import Testing

/// Names as people and other programs make them, and names that are traps.
@Suite struct NameTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.write("text", "text\n")
  }

  @Test func `a name has up to 255 bytes`() throws {
    // Two bytes a letter, so that bytes are counted and not letters.
    let longest = String(repeating: "é", count: 127) + "x"
    try desk.done("put", "text", "/\(longest)")
    try desk.done("mkdir", "-p", "/\(longest)-".replacingOccurrences(of: "é", with: "e") + "/\(longest)")
    #expect(try desk.done("ls").output.contains("\(longest)\n"))
    try desk.done("get", "/\(longest)", "out")
    #expect(try desk.read("out/\(longest)") == desk.read("text"))
    for arguments in [
      ["put", "text", "/\(longest)x"], ["mkdir", "/\(longest)x"], ["mv", "/\(longest)", "/x\(longest)"],
      ["get", "/\(longest)x", "out"],
    ] {
      try desk.refused(64, "1 to 255 bytes", running: arguments, unchanged: ["vault/objects", "out"])
    }
    #expect(try desk.done("cat", "/\(longest)").output == "text\n")
  }

  @Test func `names that lead elsewhere are refused everywhere`() throws {
    try desk.done("mkdir", "/folder")
    try desk.done("put", "text", "/folder/text")
    let traps = ["..", ".", "/..", "/folder/../folder/text", "/./folder", "folder/..", "../../etc/passwd"]
    for trap in traps { try desk.refused(64, "not be . or ..", running: ["mkdir", trap]) }
    let commands: [(String) -> [String]] = [
      { ["put", "text", $0] }, { ["put", "-r", "out", "\($0)/new"] }, { ["get", $0, "out"] },
      { ["get", "-r", $0, "out"] },
      { ["get", $0, "-"] }, { ["cat", $0] }, { ["mkdir", "-p", "\($0)/x"] }, { ["mv", "/folder/text", $0] },
      { ["mv", $0, "/moved"] }, { ["rm", "-r", $0] }, { ["ls", $0] }, { ["stat", $0] },
    ]
    for (number, command) in commands.enumerated() {
      let arguments = command(traps[number % traps.count])
      try desk.refused(64, "not be . or ..", running: arguments, unchanged: ["out"])
    }
    for (arguments, code) in [
      (["mkdir", ""], 64), (["mkdir", "/"], 64), (["mkdir", "-p", "///"], 64), (["rm", "-r", "/"], 64),
      (["rm", ""], 64),
      (["mv", "", "/x"], 64), (["mv", "/folder", "/folder/inside"], 64),
      (["mkdir", "/folder"], 73), (["mkdir", "/folder/text"], 73), (["put", "", "/x"], 64), (["get", "", "out"], 64),
      (["cat", ""], 64), (["put", "text", "/absent/text"], 66), (["put", "text", "/folder/text/below"], 66),
      (["put", "text", "/new/"], 66), (["get", "/absent", "out"], 66), (["get", "/folder", "out"], 64),
      (["get", "/folder/text", "absent/text"], 66), (["get", "/folder/text", "absent/"], 66), (["rm", "/folder"], 64),
      (["put", "out", "/"], 64), (["mv", "/absent", "/x"], 66), (["stat", "/absent"], 66), (["rm", "/absent"], 66),
      (["put", "-", "/"], 64), (["put", "text", "text", "/folder/text"], 66),
    ] {
      try desk.refused(Int32(code), running: arguments, unchanged: ["out"])
    }
    #expect(try desk.done("ls", "-R").output == "folder/\nfolder/text\n")
    try desk.done("mkdir", "/other")
    try desk.refused(73, "a file of that name is there already", running: ["mv", "/other", "/folder/text"])
    try desk.done("rm", "-r", "/other")
    #expect(try desk.done("cat", "folder//text/").output == "text\n")
  }

  @Test func `what stands where a copy goes is not followed and not lost`() throws {
    try desk.done("mkdir", "/folder")
    try desk.done("put", "text", "/folder/text")
    try desk.write("elsewhere", "mine\n")
    let manager = FileManager.default
    try manager.createDirectory(atPath: desk.path("target"), withIntermediateDirectories: false)
    // A link with the folder's name would lead the copies out of the destination.
    try manager.createSymbolicLink(atPath: desk.path("out/folder"), withDestinationPath: desk.path("target"))
    let outcome = try desk.coffer("get", "-r", "/folder", "out")
    #expect(outcome.code != 0 && outcome.bytes.isEmpty)
    #expect(desk.listing("target").isEmpty)
    try desk.remove("out/folder")

    // A link with the file's name is replaced; what it leads to stays.
    try manager.createSymbolicLink(atPath: desk.path("out/text"), withDestinationPath: desk.path("elsewhere"))
    try desk.done("get", "/folder/text", "out")
    #expect(try desk.read("out/text") == desk.read("text"))
    #expect(try desk.read("elsewhere") == Array("mine\n".utf8))
    try manager.createDirectory(atPath: desk.path("out/second/text"), withIntermediateDirectories: true)
    try desk.refused(73, "folder of the same name", running: ["get", "/folder/text", "out/second"], unchanged: ["out"])
  }

  @Test func `names that are not UTF-8 come back as they were`() throws {
    let name: [UInt8] = [0x66, 0xff, 0xfe, 0x2e, 0x74]
    try FileManager.default.createDirectory(atPath: desk.path("tree"), withIntermediateDirectories: false)
    try make(name, in: "tree", [1, 2, 3])
    try make([0xc3], in: "tree", [4])
    try desk.done("put", "-r", "tree", "/")
    #expect(try desk.done("ls", "/tree").bytes == name + [10] + [0xc3, 10])
    #expect(try desk.done("ls", "/tree", "--json").output.contains("66fffe2e74"))
    try desk.done("get", "-r", "/tree", "out")
    let difference = try desk.run("/usr/bin/diff", ["-r", "tree", "out/tree"])
    #expect(difference.code == 0 && difference.bytes.isEmpty, "\(difference.output)")
    #expect(try contents(of: name, in: "out/tree") == [1, 2, 3])

    // On the command line such a name would be taken for another one.
    let shell = { (command: String) in
      try self.desk.run(
        "/bin/sh", ["-c", "exec \"$0\" \(command)", RunningProgram.folder.appendingPathComponent("coffer").path])
    }
    for command in [
      "put --passcode-file passcode tree/$(printf 'f\\377\\376.t') /",
      "cat --passcode-file passcode \"$(printf '/\\303')\"",
    ] {
      expect(try shell(command), code: 64, says: ["not valid UTF-8"])
    }
    #expect(try desk.done("ls").output == "tree/\n")
  }

  private func make(_ name: [UInt8], in folder: String, _ bytes: [UInt8]) throws {
    let path = Array(desk.path(folder).utf8CString.dropLast()) + [47] + name.map { CChar(bitPattern: $0) } + [0]
    let file = try Descriptor(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600), "open")
    #expect(file.write(bytes))
  }

  private func contents(of name: [UInt8], in folder: String) throws -> [UInt8] {
    let path = Array(desk.path(folder).utf8CString.dropLast()) + [47] + name.map { CChar(bitPattern: $0) } + [0]
    return try Descriptor(open(path, O_RDONLY | O_CLOEXEC), "open").read(until: nil)
  }
}
