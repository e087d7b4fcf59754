internal import CofferSystem

/// What a client asks of the agent, and of which vault. One message, after which the client only says that it was
/// interrupted, or that it is still there.
struct AgentRequest: Sendable {
  enum Body: Sendable {
    case run(Command)
    case status(untilLocked: Bool)
    case unlock(SecretBytes)
    case lock(immediately: Bool)
    /// - Parameter isForced: also where what programs wrote last cannot be stored, and is lost.
    case stop(isForced: Bool)

    /// The answer waits for what may happen at any time.
    var mayWait: Bool { if case .status(untilLocked: true) = self { true } else { false } }
    var isEnd: Bool { if case .stop = self { true } else { false } }
  }

  /// A command's arguments and the variables that matter to it. With it come descriptors: standard input, output and
  /// error, the current folder, the terminal where there is one, and those that its paths name.
  struct Command: Hashable, Sendable {
    let arguments: [String]
    let environment: [String: String]
    let hasTerminal: Bool
    let places: [GivenPlace]

    var fixedCount: Int { hasTerminal ? 5 : 4 }

    /// Whether so many descriptors are what belongs to it.
    func isWhole(with descriptorCount: Int) -> Bool {
      let given = places.map { Int($0.index) }
      return given.allSatisfy { $0 < descriptorCount && $0 != AgentRequest.folderIndex }
        && descriptorCount == max(fixedCount, (given.max() ?? 0) + 1)
    }
  }

  let folder: FolderIdentity
  let body: Body

  /// It asks an agent what it is that it holds.
  var isForAnyVault: Bool { if case .status(untilLocked: false) = body { folder == .any } else { false } }

  /// Descriptors that the paths of a command may name.
  static let placeLimit = 16
  static let folderIndex = 3
  static let terminalIndex = 4
  static let descriptorLimit = 5 + placeLimit
  /// Bytes of a message at most: more than a command line with its environment can have on Linux, unless someone raised
  /// the limit of the stack.
  static let limit = 4 << 20
  private static let passcodeLimit = 1024
  private static let prefixByteCount = 17

  private enum Kind: UInt8 {
    case run = 1
    case status, unlock, lock, stop
  }

  /// The whole message as it is sent. It may hold a passcode.
  var message: SecretBytes {
    var writer = ByteWriter()
    var secret: SecretBytes?
    func begin(_ kind: Kind) {
      writer.write(kind.rawValue)
      writer.write(folder.device)
      writer.write(folder.inode)
    }
    switch body {
    case .run(let command):
      begin(.run)
      writer.write(UInt32(command.arguments.count))
      for argument in command.arguments { writer.write(counted: Array(argument.utf8)) }
      writer.write(UInt32(command.environment.count))
      for (name, value) in command.environment {
        writer.write(counted: Array(name.utf8))
        writer.write(counted: Array(value.utf8))
      }
      writer.write(UInt8(command.hasTerminal ? 1 : 0))
      writer.write(UInt32(command.places.count))
      for place in command.places {
        writer.write(counted: Array(place.path.utf8))
        writer.write(place.index)
        writer.write(counted: Array(place.below.utf8))
      }
    case .status(let untilLocked):
      begin(.status)
      writer.write(UInt8(untilLocked ? 1 : 0))
    case .unlock(let passcode):
      begin(.unlock)
      secret = passcode
    case .lock(let immediately):
      begin(.lock)
      writer.write(UInt8(immediately ? 1 : 0))
    case .stop(let isForced):
      begin(.stop)
      // Without more an agent of any version understands it.
      if isForced { writer.write(UInt8(1)) }
    }
    let count = writer.bytes.count + (secret?.count ?? 0)
    return SecretBytes(count: IncomingRequest.headerByteCount + count) { buffer in
      buffer.copyBytes(from: IncomingRequest.mark + UInt32(count).bigEndianBytes + writer.bytes)
      secret?.withUnsafeBytes { secret in
        UnsafeMutableRawBufferPointer(rebasing: buffer[(buffer.count - secret.count)...]).copyMemory(from: secret)
      }
    }
  }

  /// Parses what follows the header. Throws `MalformedBytes`.
  init(parsing bytes: UnsafeRawBufferPointer) throws(MalformedBytes) {
    guard bytes.count >= Self.prefixByteCount else { throw MalformedBytes() }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[Self.prefixByteCount...])
    var prefix = ByteReader(Array(bytes[..<Self.prefixByteCount]))
    guard let kind = Kind(rawValue: try prefix.read()) else { throw MalformedBytes() }
    folder = FolderIdentity(device: try prefix.read(), inode: try prefix.read())
    if kind == .unlock {
      // Not through a reader, which would copy it.
      guard rest.count <= Self.passcodeLimit else { throw MalformedBytes() }
      body = .unlock(SecretBytes(copying: rest))
      return
    }
    var reader = ByteReader(Array(rest))
    switch kind {
    case .run:
      var arguments: [String] = []
      for _ in 0..<(try reader.count()) { arguments.append(try reader.text()) }
      var environment: [String: String] = [:]
      for _ in 0..<(try reader.count()) {
        let name = try reader.text()
        environment[name] = try reader.text()
      }
      let hasTerminal = try reader.flag()
      var places: [GivenPlace] = []
      for _ in 0..<(try reader.count()) {
        places.append(GivenPlace(path: try reader.text(), index: try reader.read(), below: try reader.text()))
      }
      body = .run(
        Command(arguments: arguments, environment: environment, hasTerminal: hasTerminal, places: places))
    case .status: body = .status(untilLocked: try reader.flag())
    case .lock: body = .lock(immediately: try reader.flag())
    case .stop, .unlock: body = .stop(isForced: reader.remaining > 0 ? try reader.flag() : false)
    }
    try reader.finish()
  }

  init(_ body: Body, of folder: FolderIdentity) {
    self.body = body
    self.folder = folder
  }
}

extension ByteReader {
  /// A number of things that each take four bytes at least, so that it is bounded by what is there.
  fileprivate mutating func count() throws(MalformedBytes) -> Int {
    let count = try read(UInt32.self)
    guard count <= remaining / 4 else { throw MalformedBytes() }
    return Int(count)
  }

  /// No zero byte: arguments and variables cannot have one.
  fileprivate mutating func text() throws(MalformedBytes) -> String {
    let bytes = try read(countedUpTo: AgentRequest.limit)
    guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { throw MalformedBytes() }
    return text
  }

  fileprivate mutating func flag() throws(MalformedBytes) -> Bool {
    switch try read(UInt8.self) {
    case 0: false
    case 1: true
    default: throw MalformedBytes()
    }
  }
}

/// A request as it comes in, in pieces of any size. What has come is overwritten when it goes: it may be a passcode.
final class IncomingRequest {
  /// Which protocol this is; another version's client or agent is not understood, and each goes its own way.
  static let mark = Array("coffer2\n".utf8)
  static var headerByteCount: Int { mark.count + 4 }

  private var bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 1024, alignment: 16)
  private var count = 0

  deinit { discard(bytes) }

  /// Takes the next bytes; the request when it is whole. Throws `MalformedBytes`, also for bytes behind it.
  func take(_ piece: UnsafeRawBufferPointer) throws(MalformedBytes) -> AgentRequest? {
    guard piece.count <= Self.headerByteCount + AgentRequest.limit - count else { throw MalformedBytes() }
    append(piece)
    let present = UnsafeRawBufferPointer(rebasing: bytes[..<count])
    guard zip(present, Self.mark).allSatisfy({ $0 == $1 }) else { throw MalformedBytes() }
    guard count >= Self.headerByteCount else { return nil }
    let stated = present.loadUnaligned(fromByteOffset: Self.mark.count, as: UInt32.self).bigEndian
    guard stated <= AgentRequest.limit, count <= Self.headerByteCount + Int(stated) else { throw MalformedBytes() }
    guard count == Self.headerByteCount + Int(stated) else { return nil }
    return try AgentRequest(parsing: UnsafeRawBufferPointer(rebasing: present[Self.headerByteCount...]))
  }

  private func append(_ piece: UnsafeRawBufferPointer) {
    if count + piece.count > bytes.count {
      // As much as has come, and not as much as somebody says will come.
      let larger = UnsafeMutableRawBufferPointer.allocate(
        byteCount: max(2 * bytes.count, count + piece.count), alignment: 16)
      larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
      discard(bytes)
      bytes = larger
    }
    UnsafeMutableRawBufferPointer(rebasing: bytes[count..<(count + piece.count)]).copyMemory(from: piece)
    count += piece.count
  }

  private func discard(_ bytes: UnsafeMutableRawBufferPointer) {
    overwrite(bytes)
    bytes.deallocate()
  }
}
