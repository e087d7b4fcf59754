internal import Synchronization

/// Something that programs had stored to mappings is lost, and nobody who could do something about it has been told. It outlives the mount.
public final class UntoldLoss: Sendable {
  private let isThere = Atomic(false)
  private let wasThere = Atomic(false)

  public init() {}

  public func note() {
    wasThere.store(true, ordering: .relaxed)
    isThere.store(true, ordering: .relaxed)
  }

  /// Whether there was one since this was asked last: whoever asks tells of it.
  public func take() -> Bool { isThere.exchange(false, ordering: .relaxed) }

  /// The same, and somebody else is to be told as well.
  public var isUntold: Bool { isThere.load(ordering: .relaxed) }

  /// Whether there ever was one, whoever has been told.
  public var hasBeen: Bool { wasThere.load(ordering: .relaxed) }
}
