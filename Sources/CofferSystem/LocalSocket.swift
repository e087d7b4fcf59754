internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A stream between two processes of one machine, which can hand over descriptors as well as bytes.
public final class LocalSocket: Sendable {
  /// Descriptors in one message at most.
  public static let descriptorLimit = Int(COFFER_DESCRIPTOR_LIMIT)

  public let descriptor: OwnedDescriptor

  private init(_ descriptor: OwnedDescriptor) { self.descriptor = descriptor }

  private convenience init() throws(SystemError) {
    #if canImport(Glibc)
      let type = CInt(SOCK_STREAM.rawValue)
    #else
      let type = SOCK_STREAM
    #endif
    let number = socket(AF_UNIX, type, 0)
    guard number >= 0 else { throw .last("socket") }
    self.init(OwnedDescriptor(adopting: number))
    guard fcntl(number, F_SETFD, FD_CLOEXEC) == 0 else { throw .last("fcntl") }
  }

  /// Listens under a new name in `folder`, for this user only. Throws EADDRINUSE where the name is taken, also by a
  /// socket that nobody listens at any more.
  public static func listen(_ name: String, in folder: OwnedDescriptor, path: String) throws(SystemError) -> LocalSocket
  {
    let socket = try LocalSocket()
    // The name appears with the permissions that the umask leaves: none for others.
    guard coffer_bind_local(socket.descriptor.number, address(name, folder, path)) == 0 else { throw .last("bind") }
    #if canImport(Glibc)
      let result = Glibc.listen(socket.descriptor.number, SOMAXCONN)
    #else
      let result = Darwin.listen(socket.descriptor.number, SOMAXCONN)
    #endif
    // A connection may be gone before it is accepted: the next one is not waited for.
    guard result == 0, fcntl(socket.descriptor.number, F_SETFL, O_NONBLOCK) == 0 else { throw .last("listen") }
    return socket
  }

  /// Connects to whoever listens under a name in `folder`; nil where nobody does.
  public static func connect(
    _ name: String, in folder: OwnedDescriptor, path: String
  ) throws(SystemError) -> LocalSocket? {
    let socket = try LocalSocket()
    while coffer_connect_local(socket.descriptor.number, address(name, folder, path)) != 0 {
      if errno == EINTR { continue }
      if errno == ENOENT || errno == ECONNREFUSED { return nil }
      throw .last("connect")
    }
    return socket
  }

  /// A name in the folder that was opened and checked, and not in what has its path by now; of any length.
  private static func address(_ name: String, _ folder: OwnedDescriptor, _ path: String) -> String {
    #if os(Linux)
      "/proc/self/fd/\(folder.number)/\(name)"
    #else
      "\(path)/\(name)"
    #endif
  }

  /// The next connection; nil where it has gone already, or there is none. Throws a shortage as it is: the connection waits on.
  public func accept() throws(SystemError) -> LocalSocket? {
    #if canImport(Glibc)
      let number = Glibc.accept(descriptor.number, nil, nil)
    #else
      let number = Darwin.accept(descriptor.number, nil, nil)
    #endif
    if number < 0 {
      if [EAGAIN, EINTR, ECONNABORTED].contains(errno) { return nil }
      throw .last("accept")
    }
    let connection = LocalSocket(OwnedDescriptor(adopting: number))
    guard fcntl(number, F_SETFD, FD_CLOEXEC) == 0, fcntl(number, F_SETFL, 0) == 0 else { throw .last("fcntl") }
    return connection
  }

  /// The user at the other end, as the system knows it.
  public func peer() throws(SystemError) -> UInt32 {
    var user: uid_t = 0
    guard coffer_peer_user(descriptor.number, &user) == 0 else { throw .last("getsockopt") }
    return user
  }

  /// The process that connected, or that listens there, as the system knows it: another one may have its number by now.
  public func peerProcess() throws(SystemError) -> Int32 {
    var process: pid_t = 0
    guard coffer_peer_process(descriptor.number, &process) == 0 else { throw .last("getsockopt") }
    return process
  }

  /// Sends all bytes; the descriptors go with the first of them. Throws EPIPE where the other end has gone.
  public func send(
    _ bytes: UnsafeRawBufferPointer, descriptors: [OwnedDescriptor] = []
  ) throws(SystemError) {
    var numbers = descriptors.map(\.number)
    var rest = bytes
    while !rest.isEmpty {
      let count = coffer_send(descriptor.number, rest.baseAddress, rest.count, numbers, CInt(numbers.count))
      if count < 0 {
        if errno == EINTR { continue }
        throw .last("sendmsg")
      }
      numbers = []
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  public func send(_ bytes: [UInt8]) throws(SystemError) {
    try bytes.withUnsafeBytes { raw in Result { () throws(SystemError) in try send(raw) } }.get()
  }

  /// Receives once: what is there, or where `waits`, the next that comes; nil where nothing is there, 0 at the end.
  ///
  /// Descriptors that came along are added to `descriptors`, close-on-exec. Throws EMSGSIZE for more than a message may
  /// have; they are closed then.
  public func receive(
    into buffer: UnsafeMutableRawBufferPointer, waits: Bool, descriptors: inout [OwnedDescriptor]
  ) throws(SystemError) -> Int? {
    while true {
      var numbers = [CInt](repeating: -1, count: Self.descriptorLimit)
      var numberCount: CInt = 0
      let count = coffer_receive(
        descriptor.number, buffer.baseAddress, buffer.count, waits ? 1 : 0, &numbers, &numberCount)
      let failure = errno
      descriptors += numbers[..<Int(numberCount)].map { OwnedDescriptor(adopting: $0) }
      if count >= 0 { return count }
      if failure == EAGAIN { return nil }
      if failure == ECONNRESET { return 0 }
      if failure != EINTR { throw SystemError(code: failure, call: "recvmsg") }
    }
  }
}
