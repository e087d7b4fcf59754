/// What happened on a device that is no decision of policy, and that its company's audit must have.
public enum DeviceEvent: String, Codable, CaseIterable, Hashable, Sendable {
  /// The vault was sealed to the company's escrow key, in the place of another or of none.
  case escrowKeyAdded
  /// The vault is not sealed to it any more.
  case escrowKeyRemoved
  /// Somebody opened the vault with the private escrow key itself, and set a new passcode.
  case escrowKeyUsed
  /// The passcode was cleared by order: for an hour, whoever has the code may set a new one.
  case passcodeCleared
  /// Somebody set a new passcode with the code.
  case clearingUsed
  /// What the device keeps of the uses of the company's key was gone: there may have been some that nobody recorded.
  case escrowRecordMissing
}
