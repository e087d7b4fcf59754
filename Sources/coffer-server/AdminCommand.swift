internal import ArgumentParser
internal import CofferServer

/// `coffer-server admin`.
struct AdminCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "admin", abstract: "People who administer a company.", subcommands: [Create.self])

  struct Create: AdministrationCommand {
    static let configuration = CommandConfiguration(
      abstract: "Adds an administrator and prints the id.",
      discussion: """
        The password is the file's first line. Of it, only a scrypt record is kept.

        Example:
          coffer-server admin create --tenant Acme --email owner@example.com --password-file -
        """)

    @Option(help: "The company's name or id.") var tenant: String
    @Option(help: "The person's e-mail address, unique in the company.") var email: String
    @Option(help: "\(Role.choices)") var role: Role = .owner
    @Option(help: "A file with the password; - is standard input.") var passwordFile: String
    @OptionGroup var common: CommonOptions

    struct Created: Output {
      let id: String
      let tenant: String
      let email: String
      let role: String
      var value: String { id }
    }

    func perform(_ administration: Administration) async throws -> Created {
      let administrator = try await administration.createAdministrator(
        tenant: tenant, email: email, role: role, password: try PasswordFile.read(passwordFile))
      return Created(
        id: administrator.id, tenant: administrator.tenant, email: administrator.email,
        role: administrator.role.rawValue)
    }
  }
}
