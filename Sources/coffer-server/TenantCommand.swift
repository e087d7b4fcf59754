internal import ArgumentParser
internal import CofferCrypto
internal import CofferServer
internal import CofferSystem

/// `coffer-server tenant`.
struct TenantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tenant", abstract: "Companies on this server.", subcommands: [Create.self])

  struct Create: AdministrationCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes a company and prints its id.",
      discussion: """
        The company gets its keys, sealed under the server key, and an empty policy that denies everything.

        Example:
          coffer-server tenant create "Acme"
        """)

    static let startsStore = true

    @Argument(help: "The company's name, unique on this server.") var name: String
    @OptionGroup var common: CommonOptions

    struct Created: Output {
      let id: String
      let name: String
      let rootFingerprint: String
      var value: String { id }
    }

    func perform(_ administration: Administration) async throws -> Created {
      let tenant = try await administration.createTenant(name: name)
      return Created(id: tenant.id, name: tenant.name, rootFingerprint: tenant.keys.root.fingerprint.hexadecimal)
    }
  }
}
