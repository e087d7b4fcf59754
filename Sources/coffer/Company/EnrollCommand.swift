internal import ArgumentParser
internal import CofferClient
internal import CofferContainer
internal import CofferPolicy
internal import CofferSystem
internal import Foundation

struct EnrollCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "enroll", abstract: "Joins a company: from then on its policy decides what leaves the vault.",
    discussion: """
      Example:
        coffer enroll https://policy.example.com COF1-…

      The code comes from the company's administrator, works once, and carries the fingerprint of the company's key.
      """)

  @OptionGroup var options: GlobalOptions

  @Option(
    help: ArgumentHelp(
      "The server's certificate (PEM), where no authority that the system trusts signed it. Only it is trusted then.",
      valueName: "file"))
  var pinCertificate: String?

  @Argument(help: ArgumentHelp("The server's address.", valueName: "url"))
  var url: String

  @Argument(help: ArgumentHelp("The enrolment code.", valueName: "code"))
  var code: String

  func run() async throws {
    await KeptReceipt.deliverAll()
    let pinned = try pinCertificate.map { try FileSystem().openNamed($0).contents(limit: 64 << 10) }
    let container = try options.open(.toldByCommand)
    defer { try? options.giveBack(container) }
    // Asked before the code is spent.
    guard case .notEnrolled = container.enrolment else {
      throw Failure.cannotCreate("this vault belongs to a company already")
    }
    try GlobalOptions.requireChangeable(container)
    let (enrolment, key) = try await PolicyClient().enroll(url: url, code: code, pinnedCertificate: pinned)
    try container.enrol(enrolment, deviceKey: key)
    Session.present.mounts?.recheckTelling()
    Session.present.held?.link.start()
    try options.giveBack(container)
    try PolicyDescription(enrolment).show(json: options.json)
  }
}
