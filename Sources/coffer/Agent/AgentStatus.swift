/// What `coffer agent status` shows.
struct AgentStatus: Codable, Sendable {
  enum State: String, Codable, Sendable {
    case unlocked
    /// The keys go when the grace period is over.
    case locking
    case locked
  }

  struct Mount: Codable, Sendable {
    var place: String
    /// Of the vault, as it was called when it was mounted.
    let folder: String
    let readOnly: Bool
    let allowOther: Bool
    /// It is not seen at its place: somebody has taken it out of the tree, and programs use it still, or has hidden it.
    var detached: Bool
    /// It lies there, and something that was mounted since hides it.
    var hidden: Bool?
    /// The system's number of it, the same in every name space of mounts; nil where it may be another's by now.
    var device: String?
    /// No other mount of this agent has it, nor will: the system gives its numbers to others, and so do people their places.
    var id: String?
    /// It has ended, and the system has it still.
    var hasEnded: Bool?
    /// Of one that has ended: what programs wrote is stored, but for what is lost.
    var stored: Bool?
    /// Of one that has ended: something is lost that programs had stored to mappings of files in it, whoever has been told.
    var pagesLost: Bool?
  }

  let running: Bool
  let process: Int32
  let vaultID: String
  let state: State
  /// Since when, as ISO 8601 has it.
  let since: String
  /// 0: never.
  let idleLockMinutes: Double
  let graceSeconds: Double
  /// Commands that are running.
  let commands: Int
  let readOnly: Bool
  /// All memory is kept out of swap; otherwise single keys are.
  let memoryLocked: Bool
  /// Core dumps and debuggers of the same user are off.
  let coreDumpsOff: Bool
  /// Where the vault is mounted.
  let mounts: [String]
  /// The same with what is shown there, and how.
  var mountDetails: [Mount]?
  /// The vault's folder, where it is still where it was when the agent began.
  var folder: String?
  /// What a request for this vault says, also where it has been moved.
  var folderIdentity: FolderIdentity?
  /// What programs wrote last is in memory alone: there was no room for it when it was to be stored.
  var waitsForRoom: Bool?
  /// Something is lost that programs had stored to mappings of files in a mount, and nobody who ended one has been told.
  var pagesLost: Bool?
  /// Whether the vault's company is heard of at once: `connected` or `offline`; absent where there is none.
  var company: String?
  /// The fingerprint of the company's key that opens the vault, too, because its policy asks for that.
  var escrowKeyFingerprint: String?
  /// That the company's audit is not the one that this device has seen.
  var auditFault: String?
}

extension Double {
  /// For a person: without a fraction where there is none, and with a unit, of which there is one or several.
  func counted(_ unit: String) -> String {
    let number = self == rounded() ? "\(Int64(self))" : "\(self)"
    return self == 1 ? "\(number) \(unit)" : "\(number) \(unit)s"
  }
}
