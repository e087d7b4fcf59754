import CofferContainer
import CofferCrypto
import CofferKeys
import CofferSystem
import Foundation
import Testing

/// A vault that belongs to the company of a running server.
final class CompanyDesk {
  let desk: Desk
  let server: RunningServer
  /// The device's id.
  let device: String
  let vaultID: String

  /// - Parameter ownerActions: what the company lets the owner do.
  init(options: [String] = [], ownerActions: [String] = ["import", "view", "edit"]) async throws {
    desk = try Desk()
    vaultID = try desk.makeVault(withRecoveryKey: false)
    server = try RunningServer(at: desk, options: options)
    try await server.allowOwner(ownerActions)
    device = try Self.enrol(desk, server)
  }

  deinit {
    // A test that failed leaves no agent.
    _ = try? desk.run("coffer", ["agent", "stop"])
  }

  /// Joins the company with the desk's present vault; returns the device's id.
  static func enrol(_ desk: Desk, _ server: RunningServer) throws -> String {
    let text = try desk.done("enroll", server.url, server.enrollmentCode(), "--json").bytes
    let policy = try #require(try JSONSerialization.jsonObject(with: Data(text)) as? [String: Any])
    return try #require(policy["device"] as? String)
  }

  /// The agent, which holds the vault to its company; returns what watches it, once the link is there.
  func linkedAgent() throws -> Watch {
    try desk.unlock()
    return try watch()
  }

  /// `coffer policy watch`, once it watches. Without an agent it is the link itself.
  func watch(_ arguments: [String] = []) throws -> Watch {
    let watch = Watch(try desk.start("coffer", ["policy", "watch", "--json"] + arguments))
    #expect(try watch.next()["event"] as? String == "watching")
    return watch
  }

  /// Gives an order; returns its id.
  func order(_ kind: String, expiresIn: Int? = nil) async throws -> String {
    var body: [String: Any] = ["kind": kind]
    body["expiresIn"] = expiresIn
    let answer = try await server.request("POST", "/v1/devices/\(device)/commands", json: body)
    try #require(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
    return try #require(answer.object["id"] as? String)
  }

  /// An order as the server shows it.
  func shown(_ order: String) async throws -> [String: Any] {
    let list = try await server.request("GET", "/v1/devices/\(device)/commands").object
    let items = try #require(list["items"] as? [[String: Any]])
    return try #require(items.first { $0["id"] as? String == order })
  }

  /// The device as the server shows it.
  func shownDevice() async throws -> [String: Any] {
    try await server.request("GET", "/v1/devices/\(device)").object
  }

  /// Stores a receipt as the device does before it wipes itself.
  func keepReceipt(of order: String, kind: String) throws {
    let container = try Container.open(
      at: desk.path("vault"), keyStore: FileKeyStore(path: desk.path("keys")),
      passcode: { Array(Desk.passcode.utf8).withUnsafeBytes { SecretBytes(copying: $0) } }, sniffer: ContentTypeHelper()
    )
    let key = try container.deviceKey()
    try container.close()
    let shown = try desk.done("policy", "--json").bytes
    let policy = try #require(try JSONSerialization.jsonObject(with: Data(shown)) as? [String: Any])
    let tenant = try #require(policy["company"] as? String)
    let kid = key.verifyingKey.fingerprint.prefix(16).map { String(format: "%02x", $0) }.joined()
    let header = #"{"alg":"EdDSA","kid":"\#(kid)","typ":"coffer-receipt+jws"}"#
    let claims =
      #"{"command":"\#(order)","device":"\#(device)","kind":"\#(kind)","outcome":"done","tenant":"\#(tenant)","#
      + #""time":1}"#
    let input = Self.base64URL(Array(header.utf8)) + "." + Self.base64URL(Array(claims.utf8))
    let receipt = input + "." + Self.base64URL(key.signature(for: Array(input.utf8)))
    let kept: [String: Any] = [
      "vault": vaultID, "path": desk.path("vault"), "keyStore": desk.path("keys"), "server": server.url,
      "receipt": receipt,
    ]
    let folder = desk.path("home/.local/state/coffer/receipts")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try JSONSerialization.data(withJSONObject: kept).write(to: URL(fileURLWithPath: "\(folder)/\(vaultID).json"))
  }

  private static func base64URL(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Waits until the server says so of the order: it hears of a receipt when the device has sent it.
  func wait(for order: String, toBe state: String) async throws -> [String: Any] {
    while true {
      let shown = try await shown(order)
      if shown["state"] as? String == state { return shown }
      try #require(shown["state"] as? String == "pending", "\(shown)")
      await Task.yield()
    }
  }
}

/// A running `coffer policy watch`, line by line.
final class Watch {
  let program: RunningProgram

  init(_ program: RunningProgram) { self.program = program }

  /// The next event.
  func next() throws -> [String: Any] {
    let line = program.line()
    try #require(!line.isEmpty, "the watch ended")
    return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
  }

  /// Reads until an event of this kind comes.
  @discardableResult
  func until(_ event: String, where isMeant: ([String: Any]) -> Bool = { _ in true }) throws -> [String: Any] {
    while true {
      let next = try next()
      if next["event"] as? String == event, isMeant(next) { return next }
    }
  }

  /// Ends it as a person does.
  func end() -> RunningProgram.Outcome {
    program.signal(2)
    return program.wait()
  }
}
