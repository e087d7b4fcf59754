import CofferVaultTestSupport

/// A file or folder below a recorded folder, whatever names it has or had.
struct NodeID: Hashable, Sendable {
  let value: Int
  /// The recorded folder itself.
  static let root = NodeID(value: 0)
}

/// One step of a recorded run.
enum StorageStep: Sendable {
  /// `node` is new and has this name now; a file is empty.
  case create(NodeID, isFolder: Bool, name: [UInt8], in: NodeID)
  case write(NodeID, offset: Int, bytes: [UInt8])
  case truncate(NodeID, byteCount: Int)
  case punch(NodeID, range: Range<Int>)
  /// Of a file's bytes or a folder's names: what was changed before is durable.
  case sync(NodeID)
  case rename(NodeID, old: [UInt8], in: NodeID, new: [UInt8], to: NodeID)
  case unlink(NodeID, name: [UInt8], in: NodeID)
  /// The workload is about to make its state number `state` durable.
  case commitBegan(state: Int)
  /// The workload was told that this state is durable.
  case durable(state: Int)
  /// Within a commit: these states may be found from now on, and no other.
  case mayHold(states: [Int])
  /// Under what the steps from here on were taken.
  case circumstances(Set<Circumstance>)
  /// A backup of the state that is being made durable begins at an empty place.
  case backupBegan
  /// It was reported as finished.
  case backupFinished
  /// It is about to be removed.
  case backupEnded

  var isSync: Bool {
    if case .sync = self { true } else { false }
  }
}

/// What was recorded: the steps in order, and what the nodes were first called.
struct StorageLog: Sendable {
  var steps: [StorageStep] = []
  /// The first path of each node, below the recorded folder.
  var paths: [NodeID: String] = [.root: ""]
}
