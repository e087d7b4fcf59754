/// What a rename does where the new name is taken.
public enum RenameMode: Sendable, Hashable, CaseIterable {
  /// What has the new name goes, if it is of the same sort: a file for a file, an empty folder for a folder.
  case replace
  /// The rename is refused.
  case refuse
  /// Both stay, and each gets the other's name. The new name must be there.
  case exchange
}
