/// What whoever mounts a vault may choose.
public struct MountSettings: Sendable {
  /// Other users see the mount as well, as far as permissions let them.
  public var allowsOthers: Bool
  /// Idle processors may halt while programs wait for answers, which takes longer in virtual machines.
  public var savesPower: Bool

  public init(allowsOthers: Bool = false, savesPower: Bool = false) {
    self.allowsOthers = allowsOthers
    self.savesPower = savesPower
  }
}
