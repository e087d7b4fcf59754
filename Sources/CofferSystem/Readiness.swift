internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Waiting for several descriptors at once.
public enum Readiness {
  /// Waits until something can be read from one of `descriptors`, its end included, and says from which. None where the
  /// time is over, a signal came first, or the system has no memory for it at this moment.
  public static func wait(
    for descriptors: [OwnedDescriptor], milliseconds: Int32
  ) throws(SystemError) -> [Bool] {
    var entries = descriptors.map { pollfd(fd: $0.number, events: Int16(POLLIN), revents: 0) }
    let count = poll(&entries, nfds_t(entries.count), milliseconds)
    if count < 0 && errno != EINTR {
      let error = SystemError.last("poll")
      guard error.isShortage || error.code == EAGAIN else { throw error }
      // As if it were over, but not at once: who has waited waits again.
      usleep(10_000)
    }
    return entries.map { count > 0 && $0.revents != 0 }
  }
}

extension OwnedDescriptor {
  /// Whoever wrote to this stream has gone, or writes no more; what is left can still be read.
  public var isHungUp: Bool { events(coffer_hang_up_event()) & coffer_hang_up_event() != 0 }

  /// Nobody reads from this pipe or socket any more.
  public var hasNoReader: Bool { events(Int16(POLLOUT)) & Int16(POLLERR | POLLHUP) != 0 }

  private func events(_ wanted: Int16) -> Int16 {
    var entry = pollfd(fd: number, events: wanted, revents: 0)
    return poll(&entry, 1, 0) > 0 ? entry.revents : 0
  }
}
