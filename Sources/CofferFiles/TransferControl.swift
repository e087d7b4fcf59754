/// How a caller follows a long transfer and stops it. Both are called from several threads.
public struct TransferControl: Sendable {
  /// Called with the number of bytes that were added since the last call.
  public let progress: @Sendable (Int) -> Void
  /// Asked before each chunk; when it answers `true` the transfer ends with `cancelled` and leaves nothing.
  public let isCancelled: @Sendable () -> Bool

  public init(
    progress: @escaping @Sendable (Int) -> Void = { _ in }, isCancelled: @escaping @Sendable () -> Bool = { false }
  ) {
    self.progress = progress
    self.isCancelled = isCancelled
  }
}
