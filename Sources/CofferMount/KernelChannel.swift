internal import CFuse3
internal import Glibc
internal import Synchronization

/// How the library reads requests and writes answers: as it would by itself, but for one thing. It does not know
/// FUSE_HANDLE_KILLPRIV_V2, by which a server clears the set-user-ID bits of files itself; without it the kernel asks for
/// the attribute `security.capability` at every write(2). So the flag is added to the answer of the first exchange, where
/// the kernel has offered it. The layout is that of `linux/fuse.h`, which the kernel keeps for ever.
enum KernelChannel {
  private static let killsPrivileges: UInt32 = 1 << 28  // FUSE_HANDLE_KILLPRIV_V2
  private static let answerFlagsOffset = 12

  static let operations = fuse_custom_io(
    writev: { descriptor, pieces, count, data in
      if let server = server(data), let pieces, count == 2, server.handshake.answers(),
        pieces[1].iov_len >= answerFlagsOffset + 4, let answer = pieces[1].iov_base
      {
        let flags = answer.loadUnaligned(fromByteOffset: answerFlagsOffset, as: UInt32.self)
        answer.storeBytes(of: flags | killsPrivileges, toByteOffset: answerFlagsOffset, as: UInt32.self)
      }
      return writev(descriptor, pieces, count)
    },
    read: { descriptor, buffer, room, data in
      let count = read(descriptor, buffer, room)
      if count > 0, let server = server(data), server.handshake.isOpen,
        let request = KernelRequest(UnsafeRawBufferPointer(start: buffer, count: count)),
        request.operation == .initialise
      {
        server.handshake.didHear(isOffered: request.offers & killsPrivileges != 0)
      }
      return count
    },
    splice_receive: nil, splice_send: nil)

  private static func server(_ data: UnsafeMutableRawPointer?) -> MountServer? {
    data.map { Unmanaged<MountServer>.fromOpaque($0).takeUnretainedValue() }
  }
}

/// The first exchange with the kernel, of which the flag above is a part.
final class Handshake: Sendable {
  private enum State: UInt8 { case waiting, offered, refused, taken }
  private let state = Atomic(State.waiting.rawValue)

  private var present: State { State(rawValue: state.load(ordering: .acquiring)) ?? .refused }

  /// Nothing has been heard from the kernel yet.
  var isOpen: Bool { present == .waiting }
  /// The kernel leaves it to the server to clear the bits.
  var isTaken: Bool { present == .taken }

  func didHear(isOffered: Bool) {
    state.store((isOffered ? State.offered : .refused).rawValue, ordering: .releasing)
  }

  /// Whether what is written now is the answer to the kernel's offer. It is so once.
  func answers() -> Bool {
    present == .offered
      && state.compareExchange(
        expected: State.offered.rawValue, desired: State.taken.rawValue, ordering: .acquiringAndReleasing
      ).exchanged
  }
}
