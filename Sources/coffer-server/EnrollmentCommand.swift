internal import ArgumentParser
internal import CofferAPI
internal import CofferServer

/// `coffer-server enrollment`.
struct EnrollmentCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "enrollment", abstract: "Codes by which devices join a company.", subcommands: [Create.self])

  struct Create: AdministrationCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes an enrolment code for one device and prints it, once.",
      discussion: """
        The code carries the fingerprint of the company's root key, so that the device knows whom it talks to.

        Example:
          coffer-server enrollment create --tenant Acme --expires-in 2h
        """)

    @Option(help: "The company's name or id.") var tenant: String
    @Option(help: "The code's life, such as 15m or 7d; at most 30d.") var expiresIn = Lifetime(seconds: 86_400)
    @OptionGroup var common: CommonOptions

    struct Created: Output {
      let id: String
      let tenant: String
      let code: String
      let expiresAt: Int64
      var value: String { code }
    }

    func perform(_ administration: Administration) async throws -> Created {
      let (code, enrollment) = try await administration.createEnrollment(tenant: tenant, lifetime: expiresIn.seconds)
      return Created(
        id: enrollment.id, tenant: enrollment.tenant, code: code.text, expiresAt: enrollment.expiresAt)
    }
  }
}
