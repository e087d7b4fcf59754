internal import ArgumentParser
internal import CofferClient
internal import CofferContainer
internal import CofferPolicy
internal import CofferSystem
internal import Foundation

struct PolicyWatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Stays, and shows what the company changes and orders.",
    discussion: """
      Example:
        coffer policy watch

      An agent holds its vault to its company by itself; this then shows what it does. Without an agent, this program
      does it as long as it runs: it has the vault open, takes over new policy at once, and carries out orders. An
      interrupt ends it.
      """)

  @OptionGroup var options: GlobalOptions

  fileprivate struct Line: Encodable {
    let event: String
    var revision: Int64?
    var kind: String?
    var outcome: String?
    var reason: String?
  }

  func run() async throws {
    if let held = Session.present.held {
      _ = try held.container.presentEnrolment()
      Session.present.noteIdleness()
      try show(held.link)
      // By the person, or with the agent.
      try Interrupts.endIfRaised()
      return
    }
    let options = try options.absolute
    KeptReceipt.finishWipe(at: try options.vaultPath)
    await KeptReceipt.deliverAll()
    let container = try options.open(.refused)
    let path = try options.vaultPath
    let keyStore = try options.keyStorePath
    let link = HeldLink(container, mounts: nil, path: path, keyStorePath: keyStore, didWipe: {})
    do {
      _ = try container.presentEnrolment()
      Interrupts.catchFromHere()
      let wasWiped = try show(link, starting: true)
      link.stop()
      try? container.close()
      if wasWiped { await WipedVault(vault: container.id, path: path, keyStore: keyStore).finish() }
    } catch {
      link.stop()
      try? container.close()
      throw error
    }
    try Interrupts.endIfRaised()
  }

  /// Shows what the link tells, until it ends, or an interrupt.
  ///
  /// - Returns: whether the vault was wiped.
  @discardableResult
  private func show(_ link: HeldLink, starting: Bool = false) throws -> Bool {
    let (watcher, interrupts) = (LinkWatcher(), Interrupts.present)
    link.add(watcher)
    defer { link.remove(watcher) }
    if starting { link.start() }
    try print(Line(event: "watching"), "watching; an interrupt ends it")
    while true {
      // What was told before it is shown: an agent that was wiped tells that, and ends.
      let isLast = interrupts.isRaised
      guard let event = watcher.next() else {
        if isLast { return false }
        continue
      }
      try print(Line(event), event.line)
      if event == .wiped { return true }
    }
  }

  private func print(_ line: Line, _ text: String) throws {
    if options.json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      Output.line(String(decoding: try encoder.encode(line), as: UTF8.self))
    } else {
      Output.line(text)
    }
    try Output.finish()
  }
}

extension PolicyWatchCommand.Line {
  fileprivate init(_ event: LinkEvent) {
    switch event {
    case .connected: self.init(event: "connected")
    case .disconnected(let error, _): self.init(event: "disconnected", reason: error?.description)
    case .applied(let revision): self.init(event: "applied", revision: revision)
    case .confirmed(let revision): self.init(event: "confirmed", revision: revision)
    case .order(let kind, let outcome): self.init(event: "order", kind: kind.rawValue, outcome: outcome.rawValue)
    case .orderRefused(let refusal): self.init(event: "orderRefused", reason: refusal.description)
    case .auditFault(let fault): self.init(event: "auditFault", reason: fault.sentence)
    case .wiped: self.init(event: "wiped")
    }
  }
}
