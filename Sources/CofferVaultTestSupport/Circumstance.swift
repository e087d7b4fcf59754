/// What a crash can meet, and must have met before a replay of crashes says something about it.
public enum Circumstance: String, CaseIterable, Sendable {
  /// A handle was open when a commit was made, and still is.
  case handleAcrossCommit
  /// A reader holds a version of a file that changed since, and a commit was made of the change.
  case snapshotAcrossCommit
  /// One file is synced while another has much that is written and not joined.
  case syncBesideDirty
  /// Two threads write to two files and sync them.
  case twoWriters
  case backup
  /// The index's log is copied into the index while the vault is in use.
  case checkpoint
  /// The vault is being closed.
  case closing
}
