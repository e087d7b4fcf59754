internal import CofferSystem
internal import Foundation

/// Where a path leads that means something else in each process.
enum OwnPlace: Hashable, Sendable {
  /// The process's descriptor of this number, or with `below`, which then begins with a slash, what is in that folder.
  case descriptor(Int32, below: String)
  case terminal
  /// Anything else that the system shows each process of itself.
  case other

  /// Links followed at most, as the system has it.
  private static let linkLimit = 40

  /// Nil for a path that means the same in every process. Links on the way are followed.
  init?(_ path: String) {
    let start = path.hasPrefix("/") ? "" : FileManager.default.currentDirectoryPath
    var rest = Array(Self.names(Array((start + "/" + path).utf8)).reversed())
    var done: [[UInt8]] = []
    var linkCount = 0
    while let name = rest.popLast() {
      if name.elementsEqual("..".utf8) {
        _ = done.popLast()
        continue
      }
      done.append(name)
      if let number = Self.descriptorNumber(done) {
        let below = rest.reversed().flatMap { [UInt8(ascii: "/")] + $0 }
        self = String(validating: below, as: UTF8.self).map { .descriptor(number, below: $0) } ?? .other
        return
      }
      guard let target = Self.target(of: done) else { continue }
      // To the working folder, the program, or whatever else the process has: the text of such a link is not its meaning.
      if Self.isOwn(done) {
        self = .other
        return
      }
      linkCount += 1
      guard linkCount <= Self.linkLimit else { return nil }
      if target.first == UInt8(ascii: "/") { done = [] } else { done.removeLast() }
      rest += Self.names(target).reversed()
    }
    if done == [Array("dev".utf8), Array("tty".utf8)] {
      self = .terminal
    } else if Self.isOwn(done) {
      self = .other
    } else {
      return nil
    }
  }

  private static func names(_ path: [UInt8]) -> [[UInt8]] {
    path.split(separator: UInt8(ascii: "/")).map(Array.init).filter { $0 != [UInt8(ascii: ".")] }
  }

  /// Whether a path leads to this process, or one of its threads, as `/proc` has them.
  private static func isOwn(_ names: [[UInt8]]) -> Bool {
    guard names.count >= 2, names[0].elementsEqual("proc".utf8),
      let number = Int32(String(decoding: names[1], as: UTF8.self))
    else { return false }
    let isThread = { (try? FileSystem().status(of: "/proc/self/task/\(number)")) != nil }
    return number == ProcessHardening.processID || isThread()
  }

  /// The number in `/proc/PROCESS/fd/NUMBER` or `/proc/PROCESS/task/THREAD/fd/NUMBER`.
  private static func descriptorNumber(_ names: [[UInt8]]) -> Int32? {
    guard names.count == 4 || names.count == 6 && names[2].elementsEqual("task".utf8),
      names[names.count - 2].elementsEqual("fd".utf8), isOwn(names)
    else { return nil }
    return Int32(String(decoding: names[names.count - 1], as: UTF8.self))
  }

  private static func target(of names: [[UInt8]]) -> [UInt8]? {
    try? FileSystem().readLink(names.flatMap { [UInt8(ascii: "/")] + $0 })
  }
}

/// What the client's process has at an ``OwnPlace``, under the text that names it.
struct GivenPlace: Hashable, Sendable {
  let path: String
  /// Which of the descriptors that came with the request.
  let index: UInt8
  let below: String
}

/// Opening what a person named. Through these functions only: in the agent, what a path means to the client's process is
/// not what it means to the agent's.
extension FileSystem {
  /// Opens it to read; the failure says which one is not there.
  func openNamed(_ path: String, _ mode: OpenMode = .readOnly) throws -> OwnedDescriptor {
    if let given = try Session.present.given(path), given.isStream { return given.descriptor }
    guard try statusNamed(path) != nil else { throw Failure.notFound("\(path): no such file") }
    // In the agent not waiting for a fifo's writer here: reading does, and hears when the client has gone.
    let mode = Session.present.container == nil ? mode : mode.union(.nonBlocking)
    return Session.present.patient(try Self.naming(path) { try open(pathNamed(path), mode) })
  }

  /// What is there, without following a link at the path's end, but for one that leads to a descriptor; nil where nothing
  /// is.
  func statusNamed(_ path: String) throws -> FileStatus? {
    if let given = try Session.present.given(path), given.below.isEmpty { return try given.descriptor.status() }
    return try Self.naming(path) { try status(of: pathNamed(path)) }
  }

  /// Runs `body`; what the system refuses says which path it was about, as it was typed.
  private static func naming<Result>(_ path: String, _ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as SystemError where !error.isInterrupt {
      throw Failure(
        code: Failure.code(error), text: "\(PathText.shown(Array(path.utf8))): \(error.meaning)", isNamed: true)
    }
  }

  /// A path by which this process comes to what the client means.
  func pathNamed(_ path: String) throws -> String {
    guard let given = try Session.present.given(path) else { return path }
    return "/proc/self/fd/\(given.descriptor.number)\(given.below)"
  }
}

/// A descriptor that a path names, with what follows in the path.
struct GivenDescriptor {
  let descriptor: OwnedDescriptor
  let below: String

  var isFolder: Bool { below.isEmpty && (try? descriptor.status().kind) == .directory }
  /// Neither a file nor a folder, so that it cannot be opened another time.
  var isStream: Bool { below.isEmpty && (try? descriptor.status().kind) == .other }
}

extension Session {
  /// The descriptor that `path` names; nil for an ordinary path. Throws where it leads to something else of a process's
  /// own, or to a descriptor that nobody gave.
  func given(_ path: String) throws -> GivenDescriptor? {
    if let place = places[path] { return place }
    switch OwnPlace(path) {
    case nil: return nil
    case .descriptor(let number, let below)? where container == nil:
      if let descriptor = OwnedDescriptor.given(number) { return GivenDescriptor(descriptor: descriptor, below: below) }
      throw Failure.notFound("\(path): no such file: the descriptor is not open")
    // In a process of its own these are what they are.
    case .terminal?, .other?:
      if container == nil { return nil }
      fallthrough
    case .descriptor?:
      throw Failure.notFound(
        "\(path): no such file that the agent could open: it is of a process's own, and no open descriptor")
    }
  }
}
