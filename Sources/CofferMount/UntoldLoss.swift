internal import Synchronization

/// Something that programs had stored to mappings is lost, and nobody who could do something about it has been told. It outlives the mount.
public final class UntoldLoss: Sendable {
  private let isThere = Atomic(false)
  private let found = Atomic(0)

  public init() {}

  public func note() {
    found.add(1, ordering: .relaxed)
    isThere.store(true, ordering: .relaxed)
  }

  /// Whether there was one since this was asked last: whoever asks tells of it.
  public func take() -> Bool { isThere.exchange(false, ordering: .relaxed) }

  /// The same, and somebody else is to be told as well.
  public var isUntold: Bool { isThere.load(ordering: .relaxed) }

  /// Whether there ever was one, whoever has been told.
  public var hasBeen: Bool { count > 0 }

  /// How many there were.
  public var count: Int { found.load(ordering: .relaxed) }
}
