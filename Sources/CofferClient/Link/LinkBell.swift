internal import CofferSystem
internal import Synchronization

/// Wakes a link from this side: something has changed that its company is to know.
public final class LinkBell: Sendable {
  private let caller = Mutex<AsyncStream<String>.Continuation?>(nil)

  public init() {}

  /// Without a connection it does nothing: the next one begins with everything.
  public func ring() { caller.withLock { _ = $0?.yield("") } }

  func connect(_ caller: AsyncStream<String>.Continuation?) { self.caller.withLock { $0 = caller } }
}
