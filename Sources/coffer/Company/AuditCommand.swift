internal import ArgumentParser
internal import CofferContainer
internal import CofferPolicy
internal import Foundation

struct AuditCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit", abstract: "Shows what this device decided by its company's policy.",
    discussion: "Examples:\n  coffer audit\n  coffer audit verify",
    subcommands: [AuditShowCommand.self, AuditVerifyCommand.self], defaultSubcommand: AuditShowCommand.self)
}

struct AuditShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows the decisions, the oldest first.",
    discussion: """
      Example:
        coffer audit --json

      Every refusal is there, and everything by which content left the vault. No file's name is. With --json each line
      is an entry as the company gets it.
      """)

  @OptionGroup var options: GlobalOptions

  func run() throws {
    try options.withContainer(.toldByCommand) { container in
      _ = try container.presentEnrolment()
      for (number, text) in try container.decisions() {
        if options.json {
          Output.line(text)
        } else if let entry = DecisionRecord(text: text) {
          let time = Date(timeIntervalSince1970: Double(entry.time)).formatted(.iso8601)
          let type = entry.fileExtension.map { " .\($0)" } ?? ""
          let rules = entry.rules.joined(separator: ", ")
          let what = entry.action?.rawValue ?? entry.event?.rawValue ?? ""
          let why = entry.reason.map { "  \($0.rawValue)  \(rules), revision" } ?? "  revision"
          Output.line("\(number)  \(time)  \(entry.actor)  \(what)\(type)\(why) \(entry.revision)")
        } else {
          Output.line("\(number)  damaged; see coffer audit verify")
        }
      }
    }
  }
}

struct AuditVerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Holds the decisions against their chain.",
    discussion: """
      Example:
        coffer audit verify

      65 where an entry was altered or moved. Numbers that are missing are named: a process that was killed had not stored
      them yet, or they are older than what is kept.
      """)

  @OptionGroup var options: GlobalOptions

  private struct Answer: Encodable {
    struct Gap: Encodable {
      let from: Int64
      let through: Int64
    }

    let entries: Int64
    let gaps: [Gap]
    let firstBroken: Int64?
  }

  func run() throws {
    try options.withContainer(.toldByCommand) { container in
      _ = try container.presentEnrolment()
      let chain = try container.verifyDecisions()
      if options.json {
        try Output.json(
          Answer(
            entries: chain.count, gaps: chain.gaps.map { .init(from: $0.lowerBound, through: $0.upperBound) },
            firstBroken: chain.broken))
      } else if chain.broken == nil {
        Output.line("\(chain.count) decisions, each as it was written")
        for gap in chain.gaps { Output.line("missing    \(gap.lowerBound) to \(gap.upperBound)") }
      }
      if let broken = chain.broken {
        throw Failure(
          code: 65, text: "decision \(broken) is not as it was written, or does not follow on the one before")
      }
    }
  }
}
