internal import CofferSystem

/// What a command has taken from one side to the other: counted, with what it passed over and why.
final class TransferTally {
  /// Passed-over items that are named on a terminal, one a line.
  private static let noteLimit = 10
  /// Those that an answer in JSON names.
  private static let answerLimit = 100

  /// `stored` or `written`.
  private let verb: String
  private var items: [Item] = []
  private var skipped: [Skipped] = []
  private var reasons: [String] = []
  var files = 0
  var folders = 0
  var links = 0
  var bytes: UInt64 = 0
  private(set) var skippedCount = 0

  init(verb: String) { self.verb = verb }

  /// One of those that a person named, once it is there.
  func add(from source: String, to target: [UInt8]) {
    items.append(Item(from: source, to: String(decoding: target, as: UTF8.self)))
  }

  func skip(_ path: [UInt8], because reason: String) {
    skippedCount += 1
    if !reasons.contains(reason) { reasons.append(reason) }
    if skipped.count < Self.answerLimit { skipped.append(Skipped(path: PathDescription(path), reason: reason)) }
    guard Session.present.errors.isTerminal else { return }
    if skippedCount <= Self.noteLimit { Output.note("\(PathText.shown(path)): not \(verb): \(reason)") }
  }

  /// Throws where something was passed over.
  ///
  /// - Parameter isAnswered: what it was is in an answer in JSON.
  func requireWhole(isAnswered: Bool) throws {
    guard skippedCount > 0 else { return }
    var text = "\(skippedCount) item(s) were not \(verb): \(reasons.joined(separator: "; "))"
    let isNamed = Session.present.errors.isTerminal && skippedCount <= Self.noteLimit
    if !isNamed, !isAnswered { text += ". With --json up to \(Self.answerLimit) of them are named" }
    throw Failure.cannotCreate(text)
  }

  var answer: Answer {
    Answer(
      items: items, files: files, folders: folders, links: links, bytes: bytes, skipped: skipped,
      skippedCount: skippedCount)
  }

  struct Answer: Encodable {
    /// Those that were named, each with where it went.
    let items: [Item]
    /// Everything, also below folders: files with their content's bytes, new folders, links.
    let files: Int
    let folders: Int
    let links: Int
    let bytes: UInt64
    let skipped: [Skipped]
    let skippedCount: Int
  }

  struct Item: Encodable {
    let from: String
    let to: String
  }

  struct Skipped: Encodable {
    let path: PathDescription
    let reason: String

    private enum CodingKeys: CodingKey { case reason }

    func encode(to encoder: any Encoder) throws {
      try path.encode(to: encoder)
      var values = encoder.container(keyedBy: CodingKeys.self)
      try values.encode(reason, forKey: .reason)
    }
  }
}
