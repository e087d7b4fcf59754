internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Foundation

struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Checks that everything in the vault is as it was written.",
    discussion: """
      Examples:
        coffer verify
        coffer verify --deep --names

      Without --deep it takes everything but the content of files above 4 KiB: the index, every name, and where content
      lies. Damage is counted, and named with --names only. Ends with code 65 where something is damaged.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(help: "Read and open all content, too.")
  var deep = false

  @Flag(help: "Say which files and folders are damaged, and how much of each is lost.")
  var names = false

  func run() throws {
    let report = try options.withContainer(.toldByCommand) { container in
      // What cannot be read now is not damaged.
      if container.isLocked {
        throw Failure(code: 77, text: "the vault is locked, and cannot be checked; unlock it with: coffer unlock")
      }
      Interrupts.catchFromHere()
      let interrupts = Interrupts.present
      let line = ProgressLine()
      defer { line.end() }
      let report = try container.verify(
        isDeep: deep, progress: { progress in line.show { Self.text(progress) } },
        isCancelled: { interrupts.isRaised })
      line.end()
      let findings = Findings(report, isDeep: deep, withNames: names, in: container)
      if options.json { try Output.json(findings) } else { findings.show() }
      return report
    }
    guard report.isClean else { throw Failure(code: 65, text: advice(report)) }
  }

  private func advice(_ report: VerificationReport) -> String {
    // Content can be replaced; a row of the index that is missing stays so.
    let isContentOnly = report.damages.allSatisfy { $0.lostByteCount != nil }
    let remedy =
      isContentOnly
      ? "remove the damaged files with coffer rm and store them again"
      : "take out what is intact with coffer get and store it in a new vault"
    return "the vault is damaged: put a backup back (see coffer backup --help), or \(remedy)"
      + (names ? "" : "; --names says what is damaged")
  }

  private static func text(_ progress: VerificationProgress) -> String {
    guard progress.checkedBucketCount == progress.bucketCount else {
      return "index  \(ProgressLine.bar(Double(progress.checkedBucketCount) / Double(progress.bucketCount)))"
    }
    let read = progress.readByteCount > 0 ? ", \(Size.text(progress.readByteCount)) read" : ""
    let counts = "\(progress.nameCount) names done\(read)"
    guard let total = progress.recordCount, total > 0 else { return "files  \(counts)" }
    return "files  \(ProgressLine.bar(Double(progress.reachedRecordCount) / Double(total)))  \(counts)"
  }
}

/// What a verification found, as it is shown.
private struct Findings: Encodable {
  let clean: Bool
  let deep: Bool
  let readOnly: Bool
  let files: UInt64
  let folders: UInt64
  let others: UInt64
  let bytes: UInt64
  let intact: UInt64
  let strayRecords: UInt64
  let damages: UInt64
  let found: [Finding]

  /// Damage of one sort, or of one file where names are shown.
  struct Finding: Encodable {
    var path: String?
    /// In hexadecimal digits, where the path is not UTF-8.
    var pathBytes: String?
    let what: String
    var count: UInt64
    /// Bytes of content; absent where it is not known how much is lost.
    var lost: UInt64?
    /// The file's size, where it can be read.
    var size: UInt64?
    /// As bytes, to be shown.
    var place: [UInt8]?

    enum CodingKeys: CodingKey { case path, pathBytes, what, count, lost, size }
  }

  init(_ report: VerificationReport, isDeep: Bool, withNames: Bool, in container: Container) {
    clean = report.isClean
    deep = isDeep
    readOnly = container.isReadOnly
    files = report.fileCount
    folders = report.folderCount
    others = report.otherCount
    bytes = report.byteCount
    intact = report.intactCount
    strayRecords = report.strayRecordCount
    damages = report.damageCount
    found =
      withNames ? report.damages.map { Self.finding($0, in: container) } : Self.findings(bySort: report.damages)
  }

  private static func finding(_ damage: VerificationReport.Damage, in container: Container) -> Finding {
    var finding = Finding(what: damage.what, count: 1, lost: damage.lostByteCount)
    guard let path = damage.path else { return finding }
    let text = String(decoding: path.bytes, as: UTF8.self)
    finding.path = text
    finding.pathBytes = Array(text.utf8) == path.bytes ? nil : path.bytes.hexadecimal
    finding.place = path.bytes
    finding.size = damage.lostByteCount.flatMap { _ in try? container.attributes(at: path).byteCount }
    return finding
  }

  private static func findings(bySort damages: [VerificationReport.Damage]) -> [Finding] {
    var sorts: [String: Finding] = [:]
    for damage in damages {
      var finding = sorts[damage.what] ?? Finding(what: damage.what, count: 0)
      finding.count += 1
      if let lost = damage.lostByteCount { finding.lost = (finding.lost ?? 0) + lost }
      sorts[damage.what] = finding
    }
    return sorts.values.sorted { $0.what < $1.what }
  }

  func show() {
    let depth = deep ? "the index, every name, and all content" : "the index and every name; --deep adds all content"
    Output.line("checked    \(depth)")
    if readOnly {
      Output.line(
        "state      older than the newest that this device has seen, as a backup is; only where it shall be the vault from "
          + "now on: coffer accept-restored")
    }
    Output.line("files      \(files), \(Size.text(bytes))")
    Output.line("folders    \(folders)")
    if others > 0 { Output.line("others     \(others)") }
    Output.line("intact     \(intact)")
    switch strayRecords {
    case 0: break
    case 1: Output.line("stray      1 record that nothing leads to; it does no harm")
    default: Output.line("stray      \(strayRecords) records that nothing leads to; they do no harm")
    }
    Output.line("damaged    \(damages == 0 ? "nothing" : "\(damages)")")
    for finding in found {
      let times = finding.count > 1 ? "\(finding.count) times " : ""
      let text = "\(times)\(finding.what)\(finding.loss)"
      if let place = finding.place {
        Output.name("  ", place, suffix: ": \(text)")
      } else {
        Output.line("  \(text)")
      }
    }
    let left = damages - found.reduce(0) { $0 + $1.count }
    if left > 0 { Output.line("  and \(left) more") }
  }
}

extension Findings.Finding {
  fileprivate var loss: String {
    guard let lost else { return place == nil ? "" : "; how much of it is lost is not known" }
    return ", \(Size.text(lost))\(size.map { " of \(Size.text($0))" } ?? "") lost"
  }
}
