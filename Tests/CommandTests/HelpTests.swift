import Foundation
import Testing

/// What a person meets who asks for help or mistypes, and what a script reads.
@Suite struct HelpTests {
  static let commands: [[String]] = [
    ["init"], ["unlock"], ["lock"], ["agent"], ["agent", "status"], ["agent", "stop"], ["agent", "run"], ["info"],
    ["passcode"], ["recover"], ["wipe"], ["escrow"], ["escrow", "keygen"], ["escrow", "clear"], ["mount"], ["unmount"],
    ["verify"],
    ["backup"], ["accept-restored"],
    ["put"], ["get"], ["cat"], ["ls"], ["stat"], ["mkdir"], ["mv"], ["rm"], ["protect"], ["import"], ["export"],
    ["enroll"], ["policy"],
    ["policy", "show"], ["policy", "refresh"], ["policy", "watch"], ["audit"], ["audit", "show"], ["audit", "verify"],
    ["apps"], ["app"], ["app", "keygen"], ["app", "sign"],
    ["app", "install"], ["app", "list"], ["app", "remove"], ["share"],
  ]

  let desk: Desk

  init() throws { desk = try Desk() }

  @Test func `every command's help has an example, and the list of commands is whole`() throws {
    for command in Self.commands {
      let help = try desk.run("coffer", command + ["--help"])
      #expect(help.code == 0)
      #expect(help.errors.isEmpty)
      #expect(help.output.contains("Example"), "\(command)")
      #expect(help.output.contains("coffer \(command.first { $0 != "show" } ?? "")"), "\(command)")
      #expect(help.output.contains("\nUSAGE:") || help.output.hasPrefix("USAGE:"), "\(command)")
    }
    // What the help of a command lists below it is in the table above, so that a new command is tried, too.
    for parent in [[], ["agent"], ["app"], ["policy"], ["audit"], ["escrow"]] {
      let output = try desk.run("coffer", parent + ["--help"]).output
      let listed = output.split(separator: "\n").filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }
        // A command with a second name is listed as "unmount, umount".
        .compactMap { $0.split(whereSeparator: { " ,".contains($0) }).first.map(String.init) }
        .filter { $0.first?.isLetter == true && !["coffer", "See", "help"].contains($0) }
      for name in listed { #expect(Self.commands.contains(parent + [name]), "\(parent + [name])") }
      #expect(listed.count >= (parent == ["escrow"] ? 1 : 2))
    }
    let version = try desk.run("coffer", ["--version"])
    #expect(version.code == 0)
    #expect(version.value.split(separator: ".").count == 3)
    #expect(!desk.exists("vault") && !desk.exists("keys"))
  }

  @Test(arguments: ["coffer", "coffer-server"])
  func `an example stands on one line that can be copied, however narrow the terminal`(program: String) throws {
    let scripts = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Scripts").standardized
    let page = try desk.run(scripts.appending(path: "man").path, [RunningProgram.folder.appending(path: program).path])
    let manual = Set(page.output.replacing("\\-", with: "-").replacing("\\e", with: "\\").components(separatedBy: "\n"))
    let dump = try JSONSerialization.jsonObject(with: Data(desk.run(program, ["--experimental-dump-help"]).bytes))
    let commands = HelpedCommand.all(try #require((dump as? [String: Any])?["command"] as? [String: Any]))
    var isWider = false
    desk.environment["COLUMNS"] = "60"
    for command in commands {
      let help = try desk.run(program, Array(command.path.dropFirst()) + ["--help"]).output.components(
        separatedBy: "\n")
      let written = command.discussion.components(separatedBy: "\n").filter { $0.hasPrefix(" ") }
      for line in written {
        #expect(help.contains(line), "\(command.path): \(line)")
        // Letters beyond ASCII have another form there.
        if line.allSatisfy(\.isASCII) { #expect(manual.contains(line), "\(command.path): \(line)") }
      }
      isWider = isWider || written.contains { $0.count > 60 }
      let synopsis = try #require(help.firstIndex { $0.hasPrefix("USAGE:") })
      let rest = try #require(help[synopsis...].firstIndex(of: ""))
      for line in help[..<synopsis] + help[rest...] where !written.contains(line) {
        #expect(line.count <= 60, "\(command.path): \(line)")
      }
    }
    #expect(isWider)
  }

  @Test(arguments: ["coffer", "coffer-server"])
  func `the manual page and the completions name every command and option`(program: String) throws {
    let scripts = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Scripts").standardized
    let page = try desk.run(scripts.appending(path: "man").path, [RunningProgram.folder.appending(path: program).path])
    #expect(page.code == 0 && page.errors.isEmpty, "\(page.errors)")
    let completions = try ["bash", "zsh", "fish"].map { shell in
      let outcome = try desk.run(program, ["--generate-completion-script", shell])
      #expect(outcome.code == 0 && outcome.errors.isEmpty)
      return (shell, outcome.output)
    }
    let help = try JSONSerialization.jsonObject(
      with: Data(desk.run(program, ["--experimental-dump-help"]).bytes))
    let commands = HelpedCommand.all(try #require((help as? [String: Any])?["command"] as? [String: Any]))
    #expect(commands.contains { $0.options.contains(program == "coffer" ? "--idle-lock" : "--listen") })
    for command in commands where command.path.count > 1 {
      let name = command.path.joined(separator: " ")
      let heading = page.output.range(of: ".SS \"\(name.replacing("-", with: "\\-"))\"\n")
      #expect(heading != nil, "\(name)")
      let section = page.output[(heading?.upperBound ?? page.output.endIndex)...].components(separatedBy: "\n.SS").first
      for option in command.options {
        #expect(section?.contains("\\fB\(option.replacing("-", with: "\\-"))\\fR") == true, "\(name) \(option)")
      }
      for (shell, script) in completions {
        for word in command.options + [command.path[command.path.count - 1]] {
          // In fish a long option is named without its dashes.
          let isThere = script.contains(word) || shell == "fish" && script.contains("-l '\(word.dropFirst(2))'")
          #expect(
            isThere || shell == "fish" && script.contains("-s '\(word.dropFirst())'"), "\(shell): \(name) \(word)")
        }
      }
    }
  }

  @Test(arguments: [
    ["nothing"], ["ls", "--all"], ["put", "a"], ["get", "/a"], ["get", "-r"], ["cat"], ["share", "/a"], ["mv", "/a"],
    ["rm"], ["enroll", "http://127.0.0.1:1"], ["app", "sign", "m.json"], ["app", "make"], ["init", "extra"],
    ["ls", "--vault"], ["mkdir"], ["policy", "drop"], ["backup"], ["backup", "a", "b"], ["verify", "/a"],
    ["accept-restored", "/a"], ["wipe", "now"], ["passcode", "new"], ["escrow", "keygen"],
    ["recover", "--recovery-key-file", "a", "--escrow-key-file", "b"],
    ["recover", "--cleared", "--escrow-key-file", "b"], ["escrow", "clear", "device.json"],
    ["import", "a", "/a"], ["export", "/a", "a"], ["import", "--rncryptor", "a"],
    ["protect", "/a"], ["protect", "/a", "high"], ["unlock", "--grace", "-1"],
    ["agent", "end"],
  ])
  func `wrong usage is told as such`(arguments: [String]) throws {
    let outcome = try desk.run("coffer", arguments)
    expect(outcome, code: 64, says: ["Usage:"])
    #expect(!desk.exists("vault") && !desk.exists("keys"))
  }

  @Test func `--json is JSON, whatever the command`() throws {
    try desk.write("a file.txt", "text\n")
    let id = try object("init", "--no-recovery-key")["vaultID"] as? String
    #expect(try object("info")["vaultID"] as? String == id)
    try desk.done("mkdir", "/folder")
    try desk.done("put", "a file.txt", "/folder")
    let listed = try #require(try json("ls", "-R") as? [[String: Any]])
    #expect(listed.map { $0["name"] as? String } == ["folder", "folder/a file.txt"])
    #expect(listed.map { $0["kind"] as? String } == ["folder", "file"])
    #expect(listed.last?["size"] as? Int == 5)
    #expect(try object("verify", "--deep")["clean"] as? Bool == true)
    #expect(try object("backup", "copy")["path"] as? String == desk.path("copy"))
    #expect(try object("stat", "/folder/a file.txt")["protection"] as? String == "complete")

    let server = try RunningServer(at: desk)
    let enrolled = try object("enroll", server.url, server.enrollmentCode())
    #expect(enrolled["revision"] is Int && enrolled["server"] as? String == server.url)
    #expect(try object("policy")["revision"] as? Int == enrolled["revision"] as? Int)
    #expect(try object("policy", "refresh")["company"] as? String == enrolled["company"] as? String)
    let team = try Team("acme", at: desk)
    let manifest = try team.sign("editor", bundleId: "com.acme.editor", teamId: "ACME")
    let signed = try desk.run("coffer", ["app", "sign", "--json", manifest, "--key", "apps-acme/team.key"])
    let signature = try JSONSerialization.jsonObject(with: Data(signed.bytes)) as? [String: String]
    #expect(signature == ["manifest": manifest, "bundleId": "com.acme.editor", "teamKey": team.key])
    let installed = try object("app", "install", manifest)
    #expect(installed["teamKey"] as? String == team.key)
    #expect((try json("app", "list") as? [[String: Any]])?.count == 1)
    #expect((try json("apps") as? [[String: Any]])?.first?["extensions"] as? [String] == [])
    #expect(try object("app", "remove", "com.acme.editor") as? [String: String] == ["removed": "com.acme.editor"])
    let second = try desk.run("coffer", ["app", "keygen", "second.key", "--json"])
    #expect((try JSONSerialization.jsonObject(with: Data(second.bytes)) as? [String: Any])?["teamKey"] is String)
    #expect(server.stop().code == 0)
  }

  private func json(_ arguments: String...) throws -> Any { try json(arguments) }

  private func json(_ arguments: [String]) throws -> Any {
    let outcome = try desk.run("coffer", arguments + ["--json", "--passcode-file", "passcode"])
    #expect(outcome.code == 0, "\(arguments): \(outcome.errors)")
    #expect(outcome.errors.isEmpty)
    return try JSONSerialization.jsonObject(with: Data(outcome.bytes))
  }

  private func object(_ arguments: String...) throws -> [String: Any] {
    try #require(try json(arguments) as? [String: Any])
  }
}

/// A command as the argument parser describes it, with those below it.
private struct HelpedCommand {
  let path: [String]
  /// With their dashes; hidden ones are left out.
  let options: [String]
  let discussion: String

  static func all(_ command: [String: Any], below path: [String] = []) -> [HelpedCommand] {
    guard let name = command["commandName"] as? String, command["shouldDisplay"] as? Bool != false, name != "help"
    else {
      return []
    }
    let below = (command["subcommands"] as? [[String: Any]] ?? []).filter { $0["commandName"] as? String != "help" }
    let arguments = below.isEmpty ? command["arguments"] as? [[String: Any]] ?? [] : []
    let options = arguments.filter { $0["shouldDisplay"] as? Bool == true }
      .flatMap { $0["names"] as? [[String: Any]] ?? [] }
      .compactMap { option in
        (option["name"] as? String).map { (option["kind"] as? String == "long" ? "--" : "-") + $0 }
      }
    let discussion = command["discussion"] as? String ?? ""
    return [HelpedCommand(path: path + [name], options: options, discussion: discussion)]
      + below.flatMap { all($0, below: path + [name]) }
  }
}
