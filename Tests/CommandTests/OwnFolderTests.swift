import Foundation
import Testing

/// A tree that holds the vault itself, and what opens it.
@Suite final class OwnFolderTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try FileManager.default.createDirectory(atPath: desk.path("tree"), withIntermediateDirectories: false)
    desk.environment["COFFER_VAULT"] = desk.path("tree/vault")
    desk.environment["COFFER_KEY_STORE"] = desk.path("tree/keys")
    try desk.makeVault(withRecoveryKey: false)
    try desk.write("tree/file", "text\n")
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  @Test func `neither is stored in the vault, by an agent as little as without one`() throws {
    for isServed in [false, true] {
      if isServed {
        try desk.unlock()
        // The agent knows what it uses.
        desk.environment["COFFER_KEY_STORE"] = nil
      }
      for source in ["tree/vault", "tree/vault/objects", "tree/vault/coffer.json", "tree/keys"] {
        let words = source == "tree/keys" ? "the key store" : "the vault's own folder"
        try desk.refused(64, words, running: ["put", "-r", source, "/"])
      }
      let outcome = try desk.coffer("put", "-r", "--json", "tree", "/")
      #expect(outcome.code == 73 && outcome.errors.contains("2 item(s) were not stored"), "\(outcome.errors)")
      let answer = try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any]
      let skipped = try #require(answer?["skipped"] as? [[String: String]])
      #expect(
        Set(skipped.map { [$0["path"], $0["reason"]] })
          == [["tree/vault", "it is the vault itself"], ["tree/keys", "it is the key store"]])
      #expect(try desk.done("ls", "-R").output == "tree/\ntree/file\n")
      try desk.done("rm", "-r", "/tree")
    }
  }

  @Test(.enabled(if: Ground.mountIsThere, Ground.missing))
  func `a mounted vault is not stored in itself`() throws {
    let ground = try Ground(.mount)
    let desk = ground.desk
    try FileManager.default.createDirectory(atPath: desk.path("around"), withIntermediateDirectories: false)
    try desk.write("around/file", "text\n")
    let bound = try desk.run("coffer", ["mount", desk.path("around/vault")])
    #expect(bound.code == 66)
    try FileManager.default.createDirectory(atPath: desk.path("around/vault"), withIntermediateDirectories: false)
    try desk.served("mount", desk.path("around/vault"))
    defer { _ = try? desk.run("coffer", ["unmount", "--force", desk.path("around/vault")]) }
    let outcome = try desk.run("coffer", ["put", "-r", "around", "/"])
    #expect(outcome.code == 73 && outcome.errors.contains("the vault is mounted there"), "\(outcome.errors)")
    #expect(try desk.served("ls", "-R").output == "around/\naround/file\n")
    // Within it, a folder is copied as any other, but not into itself.
    try desk.served("mkdir", "/copy")
    try desk.served("put", "-r", desk.path("around/vault/around"), "/copy")
    try desk.unserved(64, "in itself", "put", "-r", desk.path("around/vault/copy"), "/copy/below")
    try desk.unserved(64, "in itself", "put", "-r", desk.path("around/vault"), "/all")
    #expect(try desk.served("ls", "-R").output == "around/\naround/file\ncopy/\ncopy/around/\ncopy/around/file\n")
  }
}
