import Foundation
import Glibc
import Testing

/// Orders from the server to a real device, and its signed answers.
@Suite struct CompanyOrderTests {
  @Test func `a lock is carried out at once, and answered`() async throws {
    let company = try await CompanyDesk()
    let watch = try company.linkedAgent()
    try company.desk.served("put", "passcode", "/file")
    let order = try await company.order("lock")
    try watch.until("order") { $0["kind"] as? String == "lock" && $0["outcome"] as? String == "done" }
    #expect(try company.desk.agentState == "locked")
    let shown = try await company.wait(for: order, toBe: "done")
    #expect(shown["receipt"] as? String != nil)
    // Once: unlocked again it stays so, whatever wakes the device.
    try company.desk.unlock()
    try await company.server.allowOwner(["view"])
    try watch.until("applied")
    #expect(try company.desk.agentState == "unlocked")
    #expect(watch.end().code == 130)
    try company.desk.served("agent", "stop")
  }

  @Test func `a wipe destroys the keys, then the rest, and the company is told`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    try desk.copy("vault", to: "copy")
    let watch = try company.linkedAgent()
    let agent = try desk.agentProcess()
    let order = try await company.order("wipe")
    try watch.until("wiped")
    _ = watch.program.wait()
    _ = try await company.wait(for: order, toBe: "done")
    // The process ends by itself, when the company has the receipt.
    while kill(agent, 0) == 0 { sched_yield() }
    #expect(!desk.exists("vault/index.sqlite"))
    #expect(!desk.exists("keys/\(company.vaultID)"))
    #expect(desk.listing("home/.local/state/coffer/receipts") == [])
    try desk.refused(66, "no vault", running: ["ls"])
    desk.environment["COFFER_VAULT"] = desk.path("copy")
    #expect(try desk.coffer("cat", "/file").code == 77)
    #expect(company.server.stop().code == 0)
  }

  @Test func `a wipe whose receipt cannot be kept destroys the keys`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    let watch = try company.linkedAgent()
    let agent = try desk.agentProcess()
    // A file where the receipts' folder is to be.
    try Kernel.mkdir(desk.path("home/.local"))
    try Kernel.mkdir(desk.path("home/.local/state"))
    try Kernel.mkdir(desk.path("home/.local/state/coffer"))
    try desk.write("home/.local/state/coffer/receipts", "")
    _ = try await company.order("wipe")
    // There is no receipt to wait for, so that it may end before the watch has shown anything.
    _ = watch.program.wait()
    while kill(agent, 0) == 0 { sched_yield() }
    #expect(!desk.exists("vault/index.sqlite"))
    #expect(!desk.exists("keys/\(company.vaultID)"))
    #expect(company.server.stop().code == 0)
  }

  @Test(arguments: [false, true]) func `a wipe that fails leaves nothing to read`(isWrittenAnew: Bool) async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    let watch = try company.linkedAgent()
    // Nothing is on its way to the key store any more: an anchor that comes where the keys were, and the place behind it elsewhere,
    // would look like a wipe that was cut.
    try watch.until("confirmed")
    try FileManager.default.moveItem(atPath: desk.path("keys"), toPath: desk.path("moved"))
    // What a commit of the agent's writes where it finds no key store: what it remembers of the vault, and where that is.
    if isWrittenAnew {
      let (from, to) = (desk.path("moved/\(company.vaultID)"), desk.path("keys/\(company.vaultID)"))
      let copied = try desk.shell("umask 77; mkdir -p '\(to)' && cp -p '\(from)/place' '\(from)/anchor' '\(to)'")
      #expect(copied.code == 0, "\(copied)")
    }
    let order = try await company.order("wipe")
    var state = ""
    while state != "locked" {
      state = try #require(try desk.agentState, "the agent has ended")
      sched_yield()
    }
    #expect(desk.exists("vault/keybag.json"))
    // The agent may have written what it remembers where the keys were: that is no sign that they are gone.
    #expect(try await company.shown(order)["state"] as? String == "pending")
    if desk.exists("keys") { try desk.remove("keys") }
    // When the keys are back, they go, and only then the company is told.
    try FileManager.default.moveItem(atPath: desk.path("moved"), toPath: desk.path("keys"))
    try watch.until("wiped")
    _ = watch.program.wait()
    _ = try await company.wait(for: order, toBe: "done")
    #expect(!desk.exists("keys/\(company.vaultID)"))
    #expect(company.server.stop().code == 0)
  }

  @Test(arguments: [false, true])
  func `a wipe that a kill cut is finished, and then answered, by whatever command comes next`(isWiped: Bool)
    async throws
  {
    let company = try await CompanyDesk()
    let desk = company.desk
    let order = try await company.order("wipe")
    // What a process leaves that was killed behind the receipt and before the first key; or behind the last.
    try company.keepReceipt(of: order, kind: "wipe")
    if isWiped { try desk.done("wipe", "--yes") }
    #expect(try await company.shown(order)["state"] as? String == "pending")
    try desk.refused(66, "no vault", running: ["policy", "refresh"])
    #expect(try await company.shown(order)["state"] as? String == "done")
    #expect(!desk.exists("keys/\(company.vaultID)"))
    #expect(desk.listing("home/.local/state/coffer/receipts") == [])
    #expect(company.server.stop().code == 0)
  }

  /// The vault's folder was taken away behind the mark of the wipe and before the first key.
  @Test func `keys that a wipe was cut from are destroyed before its receipt is sent, wherever the vault is`()
    async throws
  {
    let company = try await CompanyDesk()
    let desk = company.desk
    let order = try await company.order("wipe")
    try company.keepReceipt(of: order, kind: "wipe")
    let kept = "keys/\(company.vaultID)"
    let cut = try desk.shell("umask 77; printf '\\0\\0\\0' > \(kept)/wiped; mv vault moved")
    try #require(cut.code == 0, "\(cut)")
    try desk.makeVault(withRecoveryKey: false)
    if geteuid() == 0 {
      // Nor is it sent while one cannot be destroyed.
      let refresh = try desk.shell(
        """
        unshare --mount sh -c 'mount --bind \(kept)/rotation \(kept)/rotation && mount -o remount,ro,bind \(kept)/rotation \
          && coffer policy refresh --passcode-file passcode'
        """)
      #expect(refresh.code == 66 && refresh.errors.contains("coffer enroll"), "\(refresh)")
      #expect(try await company.shown(order)["state"] as? String == "pending")
      #expect(!desk.exists("\(kept)/device-secret") && desk.exists("\(kept)/rotation"))
    }
    try desk.refused(66, "coffer enroll", running: ["policy", "refresh"])
    #expect(try await company.shown(order)["state"] as? String == "done")
    for item in ["device-secret", "rotation", "escrow"] { #expect(!desk.exists("\(kept)/\(item)")) }
    #expect(company.server.stop().code == 0)
  }

  @Test func `no receipt is sent of a vault that is somewhere else, and no other vault is destroyed in its place`()
    async throws
  {
    let company = try await CompanyDesk()
    let desk = company.desk
    let order = try await company.order("wipe")
    try company.keepReceipt(of: order, kind: "wipe")
    try FileManager.default.moveItem(atPath: desk.path("vault"), toPath: desk.path("moved"))
    try desk.makeVault(withRecoveryKey: false)
    try desk.refused(66, "coffer enroll", running: ["policy", "refresh"])
    try desk.done("ls")
    #expect(try await company.shown(order)["state"] as? String == "pending")
    desk.environment["COFFER_VAULT"] = desk.path("moved")
    // The vault itself is wiped before anyone opens it again, and then the company is told.
    try desk.refused(66, "no vault", running: ["ls"])
    #expect(!desk.exists("keys/\(company.vaultID)"))
    try desk.refused(66, "no vault", running: ["policy", "refresh"])
    #expect(try await company.shown(order)["state"] as? String == "done")
    desk.environment["COFFER_VAULT"] = desk.path("vault")
    try desk.done("ls")
  }

  @Test func `an order to wipe is for the vault that is open, and not for what lies in its place by now`() async throws
  {
    let company = try await CompanyDesk()
    let desk = company.desk
    let watch = try company.linkedAgent()
    try FileManager.default.moveItem(atPath: desk.path("vault"), toPath: desk.path("moved"))
    try desk.makeVault(withRecoveryKey: false)
    try desk.done("put", "passcode", "/file")
    let order = try await company.order("wipe")
    try watch.until("wiped")
    _ = watch.program.wait()
    _ = try await company.wait(for: order, toBe: "done")
    #expect(!desk.exists("moved/keybag.json"))
    let kept = "keys/\(company.vaultID)"
    for item in ["device-secret", "rotation", "escrow"] { #expect(!desk.exists("\(kept)/\(item)")) }
    try desk.done("cat", "/file")
    #expect(company.server.stop().code == 0)
  }

  @Test func `a backup that is recovered after an order to wipe was carried out is not wiped by it`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    let copied = try desk.shell(
      """
      coffer passcode --passcode-file passcode --new-passcode-file passcode --new-recovery-key-file key && cp -a vault backup
      """)
    try #require(copied.code == 0, "\(copied)")
    let order = try await company.order("wipe")
    try company.keepReceipt(of: order, kind: "wipe")
    #expect(company.server.stop().code == 0)
    // It is told as soon as the company can be reached, which it cannot.
    try desk.done("wipe", "--yes")
    try FileManager.default.moveItem(atPath: desk.path("backup"), toPath: desk.path("vault"))
    // The mark stays where the vault's folder was moved, and is none of a backup's.
    let marked = try desk.shell(
      "umask 77; mkdir keys/\(company.vaultID) && printf '\\0\\0\\0' > keys/\(company.vaultID)/wiped")
    try #require(marked.code == 0, "\(marked)")
    #expect(try desk.run("coffer", ["ls", "--passcode-file", "passcode"]).code == 77)
    #expect(desk.exists("vault/keybag.json") && desk.exists("vault/index.sqlite"))
    let recovered = try desk.shell("coffer recover --recovery-key-file key --new-passcode-file passcode")
    try #require(recovered.code == 0, "\(recovered)")
    try desk.done("ls")
    #expect(desk.exists("keys/\(company.vaultID)/device-secret"))
    #expect(desk.listing("home/.local/state/coffer/receipts") != [])
  }

  /// The key store was taken away, or its disk is missing; or an agent that has the vault open has found it so.
  @Test(arguments: [false, true])
  func `that there are no keys is no sign that they were destroyed`(isWrittenAnew: Bool) async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    let order = try await company.order("wipe")
    try company.keepReceipt(of: order, kind: "wipe")
    let kept = "keys/\(company.vaultID)"
    let taken = try desk.shell(
      "umask 77; mv \(kept) taken; mv vault moved"
        + (isWrittenAnew ? "; mkdir \(kept); cp taken/place taken/anchor \(kept)" : ""))
    try #require(taken.code == 0, "\(taken)")
    try desk.makeVault(withRecoveryKey: false)
    try desk.refused(66, "coffer enroll", running: ["policy", "refresh"])
    #expect(try await company.shown(order)["state"] as? String == "pending")
    let returned = try desk.shell("rm -rf \(kept); mv taken \(kept)")
    try #require(returned.code == 0, "\(returned)")
    desk.environment["COFFER_VAULT"] = desk.path("moved")
    try desk.refused(66, "no vault", running: ["ls"])
    try desk.refused(66, "no vault", running: ["policy", "refresh"])
    #expect(try await company.shown(order)["state"] as? String == "done")
    #expect(!desk.exists(kept))
    #expect(company.server.stop().code == 0)
  }

  @Test func `refresh and the log are done`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/a secret name")
    let watch = try company.linkedAgent()
    let refresh = try await company.order("refresh")
    _ = try await company.wait(for: refresh, toBe: "done")
    #expect(try await company.server.request("GET", "/v1/devices/\(company.device)/log").status == 404)
    let upload = try await company.order("uploadLog")
    _ = try await company.wait(for: upload, toBe: "done")
    let log = try await company.server.request("GET", "/v1/devices/\(company.device)/log")
    let lines = try #require(log.object["lines"] as? [String])
    #expect(lines.contains { $0.hasSuffix("info order refresh: done") }, "\(lines)")
    #expect(!lines.joined().contains("secret name") && !lines.joined().contains(desk.root))
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
    try desk.done("ls")
  }

  @Test func `an order that has ended is not carried out by a device whose clock was set back`() async throws {
    let company = try await CompanyDesk()
    let order = try await company.order("lock", expiresIn: 60)
    #expect(try await company.shown(order)["state"] as? String == "pending")
    let answer = try await company.server.request("DELETE", "/v1/devices/\(company.device)/commands/\(order)")
    #expect(answer.status == 204)
    let watch = try company.linkedAgent()
    try watch.until("confirmed")
    try await company.server.allowOwner(["view"])
    try watch.until("applied")
    #expect(try company.desk.agentState == "unlocked")
    #expect(watch.end().code == 130)
    try company.desk.served("agent", "stop")
  }
}
