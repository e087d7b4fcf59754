internal import ArgumentParser
internal import CofferClient
internal import CofferContainer
internal import CofferPolicy
internal import Foundation

struct PolicyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy", abstract: "Shows the company's policy, or fetches it anew.",
    discussion: "Examples:\n  coffer policy\n  coffer policy refresh\n  coffer policy watch",
    subcommands: [PolicyShowCommand.self, PolicyRefreshCommand.self, PolicyWatchCommand.self],
    defaultSubcommand: PolicyShowCommand.self)
}

struct PolicyShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows the policy that decides now.", discussion: "Example:\n  coffer policy")

  @OptionGroup var options: GlobalOptions

  func run() throws {
    try options.withContainer { try PolicyDescription($0.presentEnrolment()).show(json: options.json) }
  }
}

struct PolicyRefreshCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refresh", abstract: "Fetches the company's present policy.",
    discussion: "Example:\n  coffer policy refresh")

  @OptionGroup var options: GlobalOptions

  func run() async throws {
    if Session.present.held == nil { KeptReceipt.finishWipe(at: try options.vaultPath) }
    await KeptReceipt.deliverAll()
    let container = try options.open(.toldByCommand)
    defer { try? options.giveBack(container) }
    let held: Enrolment
    if case .outdated(let older) = container.enrolment { held = older } else { held = try container.presentEnrolment() }
    try GlobalOptions.requireChangeable(container)
    let enrolment = try await PolicyClient().refresh(held, deviceKey: container.deviceKey())
    try container.update(enrolment)
    Session.present.mounts?.recheckTelling()
    // Orders, and what the company is to know, are the link's.
    Session.present.held?.link.wake()
    try options.giveBack(container)
    try PolicyDescription(enrolment).show(json: options.json)
  }
}

extension Container {
  /// The enrolment, or the failure that says why there is none.
  func presentEnrolment() throws -> Enrolment {
    switch enrolment {
    case .notEnrolled: throw Failure.notFound("this vault belongs to no company; join one with: coffer enroll")
    case .outdated, .policyMissing: throw Failure(code: 77, text: Decision.withoutPolicy.sentence)
    case .enrolled(let enrolment): return enrolment
    }
  }
}

/// A policy in text.
struct PolicyDescription: Encodable {
  let company: String
  let device: String
  let server: String
  let revision: Int64
  let issued: String
  let expires: String
  let confirmed: String
  let ownerActions: [String]
  /// Of the key that the policy has vaults sealed to.
  let escrowKeyFingerprint: String?
  /// What this device has seen of the company's audit: `NUMBER:HASH`, as `coffer-server audit verify --witness` takes it.
  let auditWitness: String?
  let auditFault: String?
  let apps: [App]

  struct App: Encodable {
    let rule: String
    let name: String
    let bundleId: String
    let teamId: String
    let extensions: [String]
    let actions: [String]
  }

  init(_ enrolment: Enrolment) {
    let policy = enrolment.policy
    company = enrolment.tenant
    device = enrolment.device
    server = enrolment.server
    revision = policy.revision
    issued = Self.text(policy.issuedAt)
    expires = Self.text(policy.notAfter)
    confirmed = Self.text(enrolment.confirmedAt)
    ownerActions = policy.settings.ownerActions.map(\.rawValue)
    escrowKeyFingerprint = (try? enrolment.escrowKey()).map { EscrowNotice.fingerprint($0.key) }
    auditWitness = enrolment.auditWitness.map { "\($0.number):\($0.hash)" }
    auditFault = enrolment.auditFault?.sentence
    apps = policy.apps.map { app in
      App(
        rule: app.ruleID, name: app.name, bundleId: app.bundleId, teamId: app.teamId, extensions: app.extensions,
        actions: app.actions.map(\.rawValue))
    }
  }

  func show(json: Bool) throws {
    if json { return try Output.json(self) }
    Output.line("company    \(company), at \(server)")
    Output.line("device     \(device)")
    Output.line("revision   \(revision), issued \(issued), confirmed \(confirmed), good until \(expires)")
    Output.line("you may    \(ownerActions.isEmpty ? "nothing without an app" : ownerActions.joined(separator: ", "))")
    if let auditWitness { Output.line("audit      seen up to \(auditWitness)") }
    if let auditFault { Output.line("audit      \(auditFault)") }
    if let escrowKeyFingerprint {
      Output.line(
        "escrow     the company's key opens this vault, too, from the next unlock on: \(escrowKeyFingerprint)")
    }
    for app in apps {
      let types = app.extensions.map { ".\($0)" }.joined(separator: " ")
      Output.line("app        \(app.bundleId) (\(app.name)): \(app.actions.joined(separator: ", ")) for \(types)")
    }
  }

  private static func text(_ seconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
  }
}
