internal import ArgumentParser
internal import CofferServer

/// `coffer-server token`.
struct TokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token", abstract: "API tokens of a company's administration.", subcommands: [Create.self])

  struct Create: AdministrationCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes an API token and prints it, once.",
      discussion: """
        Send it as Authorization: Bearer. Only its hash is kept.

        Example:
          coffer-server token create --tenant Acme --role owner --expires-in 30d
        """)

    @Option(help: "The company's name or id.") var tenant: String
    @Option(help: "\(Role.choices)") var role: Role
    @Option(help: "What people tell the token by.") var name = ""
    @Option(help: "What the token is limited to, such as policy:read. May be repeated; without it, all of the role's.")
    var scope: [Permission] = []
    @Option(help: "The token's life, such as 12h or 30d; at most 366d.") var expiresIn = Lifetime(seconds: 90 * 86_400)
    @OptionGroup var common: CommonOptions

    struct Created: Output {
      let id: String
      let tenant: String
      let role: String
      let scopes: [String]
      let token: String
      let expiresAt: Int64
      var value: String { token }
    }

    func perform(_ administration: Administration) async throws -> Created {
      let (secret, token) = try await administration.createToken(
        tenant: tenant, role: role, name: name, scopes: scope.isEmpty ? nil : Set(scope),
        lifetime: expiresIn.seconds)
      return Created(
        id: token.id, tenant: token.tenant, role: token.role.rawValue,
        scopes: token.permissions.map(\.rawValue).sorted(), token: secret.text, expiresAt: token.expiresAt)
    }
  }
}
