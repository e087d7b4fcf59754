internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferPolicy

struct InfoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "info", abstract: "Shows what the vault is and whose.", discussion: "Example:\n  coffer info")

  @OptionGroup var options: GlobalOptions

  private struct Info: Encodable {
    let vaultID: String
    let readOnly: Bool
    var company: String?
    var policyRevision: Int64?
    var policyMissing = false
    var policyOutdated = false
    /// log2 of scrypt's N, and the bytes of memory that each try of a passcode takes.
    let costExponent: Int
    let memory: Int
    let recoveryKey: Bool
    let escrowKeyFingerprint: String?
    /// Because the company's policy asks for it.
    let escrowByPolicy: Bool
    let wipeAfterTen: Bool

    init(_ container: Container) throws {
      let keys = try container.keySummary()
      costExponent = keys.derivation.costExponent
      memory = keys.derivation.memory
      recoveryKey = keys.hasRecoveryKey
      escrowKeyFingerprint = keys.escrowKey.map { EscrowNotice.fingerprint($0) }
      escrowByPolicy = keys.escrowKey != nil && keys.escrowKey == container.companyEscrowKey
      wipeAfterTen = keys.wipesAfterTenFailures
      vaultID = container.id.description
      readOnly = container.isReadOnly
      switch container.enrolment {
      case .notEnrolled: break
      case .policyMissing: policyMissing = true
      case .outdated(let enrolment):
        company = enrolment.tenant
        policyRevision = enrolment.policy.revision
        policyOutdated = true
      case .enrolled(let enrolment):
        company = enrolment.tenant
        policyRevision = enrolment.policy.revision
      }
    }
  }

  func run() throws {
    try options.withContainer(.toldByCommand) { container in
      let info = try Info(container)
      if options.json { return try Output.json(info) }
      Output.line("vault      \(info.vaultID)")
      Output.line(
        "changes    \(info.readOnly ? "refused: older than what this device has seen; see accept-restored" : "allowed")"
      )
      Output.line("passcode   scrypt, N = 2^\(info.costExponent), \(Size.text(UInt64(info.memory))) for each try")
      Output.line(
        "wiped      \(info.wipeAfterTen ? "after ten wrong passcodes" : "never for wrong passcodes, which are delayed")"
      )
      Output.line("recovery   \(info.recoveryKey ? "with the recovery key" : "no recovery key was made")")
      if let fingerprint = info.escrowKeyFingerprint {
        let whose = info.escrowByPolicy ? EscrowNotice.byPolicy : "a company's key opens the vault, too"
        Output.line("escrow     \(whose): \(fingerprint)")
      }
      if info.policyMissing {
        Output.line("company    enrolled, but the policy is missing: everything that policy decides is refused")
      } else if let company = info.company, let revision = info.policyRevision {
        let state = info.policyOutdated ? ", older than what this device has applied: coffer policy refresh" : ""
        Output.line("company    \(company), policy revision \(revision)\(state)")
      } else {
        Output.line("company    none: the vault is its owner's own, and everything is allowed")
      }
    }
  }
}
