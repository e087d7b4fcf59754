import CofferTestSupport
import Glibc

/// Does random operations in a folder and says what came of each, in words that are the same for folders that behave the
/// same.
final class RandomPerformer {
  let path: String
  private var files: [Handle?] = Array(repeating: nil, count: RandomOperation.slots)

  init(_ path: String) { self.path = path }

  func perform(_ operation: RandomOperation) -> String {
    do {
      return try result(of: operation)
    } catch {
      return "\(error)"
    }
  }

  private func place(_ name: String) -> String { path + "/" + name }

  /// The file of a slot, or of another one where it is empty.
  private func file(_ slot: Int) throws -> Handle {
    let open = files.compactMap { $0 }
    guard let file = files[slot] ?? (open.isEmpty ? nil : open[slot % open.count]) else { throw CallError(EBADF) }
    return file
  }

  private func result(of operation: RandomOperation) throws -> String {
    switch operation {
    case .makeFile(let path, let mode, let isExclusive):
      let file = try Handle(
        place(path), O_CREAT | O_WRONLY | O_NONBLOCK | (isExclusive ? O_EXCL : 0), mode: mode)
      return words(try file.stat())
    case .makeFolder(let path, let mode): try Kernel.mkdir(place(path), mode: mode)
    case .makeNode(let path, let kind): try Kernel.makeNode(place(path), kind)
    case .symlink(let path, let target): try Kernel.symlink(target, at: place(path))
    case .link(let old, let new, let following): try Kernel.link(place(old), place(new), following: following)
    case .rename(let old, let new, let flags): try Kernel.rename(place(old), place(new), flags: flags)
    case .unlink(let path): try Kernel.unlink(place(path))
    case .removeFolder(let path): try Kernel.rmdir(place(path))
    case .stat(let path, let following): return words(try Kernel.stat(place(path), following: following))
    case .chmod(let path, let mode):
      try Kernel.chmod(place(path), mode & bits(of: try Kernel.stat(place(path), following: true)))
    case .chown(let path, let user, let group): try Kernel.chown(place(path), user: user, group: group)
    case .setTimes(let path, let accessed, let modified):
      try Kernel.setTimes(place(path), accessed: accessed, modified: modified)
      let stat = try Kernel.stat(place(path))
      return "\(stat.accessed) \(stat.modified)"
    case .truncate(let path, let count): try Kernel.truncate(place(path), to: count)
    case .setAttribute(let path, let name, let count, let seed, let flags):
      try Kernel.setAttribute(place(path), name, noise(count, seed: seed), flags: flags)
    case .removeAttribute(let path, let name): try Kernel.removeAttribute(place(path), name)
    case .list(let path):
      return try Kernel.listing(place(path)).map { "\($0.name) \($0.kind)" }.sorted().joined(separator: ", ")
    default: return try resultOnOpenFile(of: operation)
    }
    return "done"
  }

  private func resultOnOpenFile(of operation: RandomOperation) throws -> String {
    switch operation {
    case .open(let slot, let path, let flags):
      files[slot] = nil
      files[slot] = try Handle(place(path), flags)
      return words(try file(slot).stat())
    case .close(let slot): files[slot] = nil
    case .read(let slot, let offset, let count):
      let bytes = try file(slot).read(count, at: offset)
      return "\(bytes.count) bytes \(bytes.hashValue)"
    case .write(let slot, let offset, let count, let seed):
      return "\(try file(slot).write(noise(count, seed: seed), at: offset))"
    case .append(let slot, let count, let seed):
      // Where a folder ends is not for lseek(2) to say.
      let isFile = try file(slot).stat().kind == S_IFREG
      if isFile { try file(slot).seek(0, SEEK_END) }
      let written = try file(slot).write(noise(count, seed: seed))
      return "\(written) to \(isFile ? try file(slot).seek(0, SEEK_CUR) : 0)"
    case .resize(let slot, let count): try file(slot).truncate(to: count)
    case .change(let slot, let change, let offset, let count): try apply(change, offset, count, to: file(slot))
    case .copy(let source, let offset, let target, let place, let count):
      var done = 0
      while done < count {
        let part = try file(target).copy(count - done, from: file(source), at: offset + done, to: place + done)
        if part == 0 { break }
        done += part
      }
      return "\(done)"
    case .map(let slot, let offset, let count, let seed): return try map(file(slot), offset, count, seed)
    case .findData(let slot, let offset): return try holes(in: file(slot), from: offset)
    case .sync(let slot): try file(slot).sync()
    case .statOpen(let slot): return words(try file(slot).stat())
    case .chmodOpen(let slot, let mode): try file(slot).chmod(mode & bits(of: file(slot).stat()))
    default: return "no operation on an open file"
    }
    return "done"
  }

  /// What two file systems must agree on.
  private func words(_ stat: NodeStat) -> String {
    let size = stat.kind == S_IFREG || stat.kind == S_IFLNK ? stat.size : 0
    return "\(stat.kind) \(stat.permissions) \(stat.links) \(stat.user):\(stat.group) \(size)"
  }

  /// Whether a new owner takes the set-user-ID bit from what is neither file nor folder is left to the file system.
  private func bits(of stat: NodeStat) -> mode_t { stat.kind == S_IFREG || stat.kind == S_IFDIR ? 0o7777 : 0o1777 }

  /// fallocate(2), with zeros written where a file system cannot make a range zeros.
  private func apply(_ change: CInt, _ offset: Int, _ count: Int, to file: Handle) throws {
    do {
      try file.change(change, offset, count)
    } catch let error as CallError where error.number == EOPNOTSUPP && change & RangeChange.zero != 0 {
      try file.change(change & ~RangeChange.zero, offset, count)
      let flags = fcntl(file.number, F_GETFL)
      try CallError.check(fcntl(file.number, F_SETFL, flags & ~O_APPEND))
      let end = min(offset + count, try file.stat().size)
      if offset < end { try file.write([UInt8](repeating: 0, count: end - offset), at: offset) }
      try CallError.check(fcntl(file.number, F_SETFL, flags))
    }
  }

  /// Changes a part of the file in memory, as far as the file goes.
  private func map(_ file: Handle, _ offset: Int, _ count: Int, _ seed: UInt64) throws -> String {
    guard try file.stat().kind == S_IFREG else { return "nothing to map" }
    let start = offset / 4096 * 4096
    let end = min(offset + count, try file.stat().size)
    guard offset < end else { return "nothing to map" }
    let map = try Mapping(of: file, at: start, count: end - start)
    let before = map[(offset - start)..<(end - start)]
    map[(offset - start)..<(end - start)] = noise(end - offset, seed: seed)
    return "\(before.count) bytes \(before.hashValue)"
  }

  /// How coarse holes are is the file system's; that they are holes is not.
  private func holes(in file: Handle, from offset: Int) throws -> String {
    guard try file.stat().kind == S_IFREG else { return "no file" }
    let size = try file.stat().size
    do {
      let hole = try file.seek(offset, GNU.seekHole)
      guard hole >= offset, hole <= size else { return "hole at \(hole) from \(offset) of \(size)" }
    } catch let error as CallError where error.number == ENXIO && offset >= size {
      return "behind the end"
    }
    let data: Int
    do {
      data = try file.seek(offset, GNU.seekData)
    } catch let error as CallError where error.number == ENXIO {
      data = size
    }
    guard fcntl(file.number, F_GETFL) & O_ACCMODE != O_WRONLY else { return "found" }
    let zeros = try file.read(data - offset, at: offset)
    return zeros.allSatisfy { $0 == 0 } && zeros.count == data - offset ? "found" : "data in a hole"
  }
}
