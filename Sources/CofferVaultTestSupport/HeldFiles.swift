internal import CofferVault

/// What a workload holds of a vault between its changes: handles that stay open, and readers of one version of a file.
public struct HeldFiles {
  /// A reader saw another content than when it began.
  public struct ChangedVersion: Error {}

  private struct Reader {
    let snapshot: FileSnapshot
    let content: [UInt8]
  }

  /// In the order of ``ExpectedVault/handles``.
  var handles: [OpenFile] = []
  private var readers: [Reader] = []

  public init() {}

  mutating func hold(_ snapshot: FileSnapshot) throws {
    readers.append(Reader(snapshot: snapshot, content: try snapshot.wholeContents()))
  }

  /// The oldest reader lets go, after a last look.
  mutating func release() throws {
    guard !readers.isEmpty else { return }
    let reader = readers.removeFirst()
    guard try reader.snapshot.wholeContents() == reader.content else { throw ChangedVersion() }
  }
}
