import CofferFiles
import CofferSystem
import Foundation
import Glibc
import Testing

@testable import CofferCrypto
@testable import CofferKeys
@testable import CofferVault

/// What is in the agent's memory while the vault is unlocked, and no more when it is locked.
@Suite(.enabled(if: geteuid() == 0, "needs root to read another process's memory"))
final class AgentMemoryTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.done("init")
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  @Test func `neither passcode, keys nor content are left when the vault is locked`() throws {
    let text = Array(repeating: Array("what is written in a file \(UUID().uuidString)\n".utf8), count: 4000).flatMap {
      $0
    }
    try desk.done("put", "-", "/large", input: text)
    try desk.done("put", "-", "/small", input: Array(text[..<900]))
    let secrets = try secrets(of: ["/large", "/small"])
    try desk.unlock()
    let process = try desk.agentProcess()
    #expect(try desk.served("cat", "/large").bytes == text)
    #expect(try desk.served("cat", "/small").bytes == Array(text[..<900]))

    // The control: the key of class complete is there, and one that is never away.
    let unlocked = try ProcessMemory(process).count(of: secrets)
    #expect(unlocked["class key complete"] ?? 0 > 0, "\(unlocked)")
    #expect(unlocked["class key until-first-unlock"] ?? 0 > 0, "\(unlocked)")
    // It was used for a moment, long before.
    #expect(unlocked["passcode"] == 0, "\(unlocked)")

    try desk.served("lock", "--now")
    let locked = try ProcessMemory(process).count(of: secrets)
    for (name, count) in locked where name != "class key until-first-unlock" {
      #expect(count == 0, "\(name): \(count) times")
    }
    #expect(locked["class key until-first-unlock"] ?? 0 > 0, "\(locked)")

    // The same once more, with the keys that came back through the socket's passcode.
    try desk.unlock()
    #expect(try ProcessMemory(process).count(of: secrets)["class key complete"] ?? 0 > 0)
    #expect(try desk.served("cat", "/large").bytes == text)
    try desk.served("lock", "--now")
    let again = try ProcessMemory(process).count(of: secrets)
    for (name, count) in again where name != "class key until-first-unlock" {
      #expect(count == 0, "\(name): \(count) times, after the second unlock")
    }
  }

  @Test(.enabled(if: Fuse.isThere, "/dev/fuse is not there"))
  func `a lock leaves nothing in memory of what went through a mount`() throws {
    let line = Array("what is written in a file \(UUID().uuidString)\n".utf8)
    let text = Array(repeating: line, count: 40_000).flatMap { $0 }
    try desk.done("put", "-", "/large", input: text)
    let secrets = try secrets(of: ["/large"])
    try desk.write("source", text)
    try FileManager.default.createDirectory(atPath: desk.path("mnt"), withIntermediateDirectories: false)
    try desk.done("mount", "mnt")
    defer { _ = try? desk.run("coffer", ["unmount", "--force", "mnt"]) }
    let process = try desk.agentProcess()
    let used = try desk.run(
      "/bin/sh", ["-c", "cat mnt/large | cmp - source && cat source > mnt/new && cmp mnt/new source"])
    #expect(used.code == 0, "\(used.errors)")
    // Of every size that an allocator may keep in a place of its own: as a program writes them, as the vault gives them to
    // the kernel, and as commands store and show them.
    for count in stride(from: line.count, to: 1_500, by: 31) {
      try desk.write("piece", Array(text[..<count]))
      let used = try desk.run("/bin/sh", ["-c", "cat piece > mnt/written-\(count) && cat mnt/written-\(count)"])
      #expect(used.bytes == Array(text[..<count]), "\(used.errors)")
      try desk.served("put", "piece", "/put-\(count)")
      #expect(try desk.run("/bin/cat", ["mnt/put-\(count)"]).bytes == Array(text[..<count]))
      #expect(try desk.served("cat", "/written-\(count)").bytes == Array(text[..<count]))
    }
    // The control: what was read is kept for the next answer.
    #expect(try ProcessMemory(process).count(of: secrets)["content"] ?? 0 > 0)
    try desk.served("lock", "--now")
    let locked = try ProcessMemory(process).count(of: secrets)
    for (name, count) in locked where name != "class key until-first-unlock" {
      #expect(count == 0, "\(name): \(count) times")
    }
  }

  /// Nothing comes between the reading and the lock, that might take the place of what the reading left.
  @Test(.enabled(if: Fuse.isThere, "/dev/fuse is not there"), arguments: [900, 100_000])
  func `a lock leaves no key in memory that a reading through a mount needed`(_ count: Int) throws {
    let text = [UInt8](repeating: UInt8(ascii: "x"), count: count)
    try desk.done("put", "-", "/file", input: text)
    let secrets = try secrets(of: ["/file"])
    try FileManager.default.createDirectory(atPath: desk.path("mnt"), withIntermediateDirectories: false)
    try desk.done("mount", "mnt")
    defer { _ = try? desk.run("coffer", ["unmount", "--force", "mnt"]) }
    #expect(try desk.run("/bin/cat", ["mnt/file"]).bytes == text)
    let process = try desk.agentProcess()
    try desk.served("lock", "--now")
    let locked = try ProcessMemory(process).count(of: secrets)
    for (name, count) in locked where name != "class key until-first-unlock" && name != "content" {
      #expect(count == 0, "\(name): \(count) times")
    }
  }

  /// A call that is bound when it is first made leaves registers on a stack, with what was copied last; and what a thread keeps
  /// of freed blocks is not written over.
  @Test func `the C library is told to leave no copies, in the foreground too`() throws {
    let told = Set(ProcessHardening.leavingNoCopies.map { "\($0.key)=\($0.value)" })
    #expect(!told.isEmpty)
    try desk.unlock()
    #expect(try told.isSubset(of: environment(of: desk.agentProcess())))
    try desk.served("agent", "stop")
    let foreground = try desk.start("coffer", ["unlock", "--foreground", "--passcode-file", "-"])
    #expect(foreground.send(Array((Desk.passcode + "\n").utf8)))
    foreground.endInput()
    #expect(foreground.line().hasPrefix("unlocked"))
    #expect(try desk.agentProcess() == foreground.processID)
    #expect(try told.isSubset(of: environment(of: foreground.processID)))
    let name = try Descriptor(open("/proc/\(foreground.processID)/comm", O_RDONLY | O_CLOEXEC), "open")
    #expect(name.read(until: nil) == Array("coffer\n".utf8))
    try desk.served("agent", "stop")
    #expect(foreground.wait().code == 0)
  }

  private func environment(of process: pid_t) throws -> [String] {
    let file = try Descriptor(open("/proc/\(process)/environ", O_RDONLY | O_CLOEXEC), "open")
    return file.read(until: nil).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test(.enabled(if: CoreDump.isWrittenToFiles, "core dumps go to a program here"))
  func `a crash leaves no core dump, though the system wants one`() throws {
    // The control: the system writes them, and a secret in memory is in them.
    let marker = UUID().uuidString
    let dump = try CoreDump.ofShell(in: desk.path("out"), holding: marker)
    #expect(Data(dump).range(of: Data(marker.utf8)) != nil)

    CoreDump.allow()
    try desk.unlock()
    let process = try desk.agentProcess()
    #expect(try desk.served("ls").code == 0)
    // The agent's current folder.
    let before = CoreDump.names(in: "/")
    kill(process, SIGSEGV)
    while FileManager.default.fileExists(atPath: "/proc/\(process)/exe") { sched_yield() }
    #expect(CoreDump.names(in: "/") == before)
    try desk.unlock()
  }

  @Test func `no page that can be written is in swap or may go there`() throws {
    try desk.unlock()
    try #require(try desk.agentStatus()?["memoryLocked"] as? Bool == true, "the system limits locked memory")
    let map = try KernelFile.text(of: "/proc/\(try desk.agentProcess())/smaps")
    var (mapping, kibibytes) = ("", 0)
    for line in map.split(separator: "\n") {
      let fields = line.split(separator: " ", omittingEmptySubsequences: true)
      guard let name = fields.first, name.hasSuffix(":") else {
        mapping = String(line)
        continue
      }
      guard mapping.contains(" rw-p ") else { continue }
      if name == "Swap:" { #expect(fields[1] == "0", "\(mapping)") }
      if name == "Rss:" { kibibytes += Int(fields[1]) ?? 0 }
      if name == "VmFlags:" { #expect(fields.contains("lo"), "\(mapping)") }
    }
    #expect(kibibytes > 1000)
  }

  /// Opens the vault as the agent will, in a copy.
  private func secrets(of paths: [String]) throws -> [String: [UInt8]] {
    try desk.copy("vault", to: "copy")
    try desk.copy("keys", to: "copied-keys")
    let keyStore = FileKeyStore(path: desk.path("copied-keys"))
    let passcode = Array(Desk.passcode.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
    let files = FileSystem()
    let folder = VaultFolder(
      files: files, path: desk.path("copy"), descriptor: try files.open(desk.path("copy"), .directory))
    let keys = try LockedVault(in: folder, keyStore: keyStore, time: SystemTime()).unlock(passcode: { passcode })
      .keys.classKeys
    var secrets = ["passcode": Array(Desk.passcode.utf8)]
    secrets["class key complete"] = keys.complete?.secretBytes.withUnsafeBytes { Array($0) }
    secrets["class key until-first-unlock"] = keys.untilFirstUnlock.secretBytes.withUnsafeBytes { Array($0) }
    let vault = try Vault.open(at: desk.path("copy"), keyStore: keyStore, passcode: { passcode })
    for path in paths {
      let inode = try vault.look { try $0.resolve(VaultPath(path)) }
      let key = try keys.unwrap(inode.wrappedKey, for: inode.protection)
      secrets["file key \(path)"] = key.secretBytes.withUnsafeBytes { Array($0) }
      // What opens the content is derived from it.
      let first = KeyDerivation(from: key).key("blocks", context: UInt64(0).bigEndianBytes)
      secrets["page key \(path)"] = first.secretBytes.withUnsafeBytes { Array($0) }
      secrets["key of the record's content \(path)"] = key.derived("inline").secretBytes.withUnsafeBytes { Array($0) }
      // What they are derived from, as it is and as HMAC hashes it (RFC 2104).
      let salt = SecretBytes(count: SecretKey.byteCount) { $0.copyBytes(from: Array("coffer".utf8)) }
      let extracted = try key.secretBytes.withUnsafeBytes {
        MessageAuthentication.code(for: Array($0), key: try SecretKey(salt))
      }
      secrets["what keys are derived from \(path)"] = extracted
      secrets["its inner block \(path)"] = extracted.map { $0 ^ 0x36 }
      secrets["its outer block \(path)"] = extracted.map { $0 ^ 0x5c }
    }
    try vault.close()
    secrets["content"] = Array("what is written in a file".utf8)
    return secrets
  }
}

/// What the system writes of a program that crashes.
private enum CoreDump {
  static let isWrittenToFiles: Bool = {
    let pattern = try? KernelFile.text(of: "/proc/sys/kernel/core_pattern")
    return pattern?.hasPrefix("core") ?? false
  }()

  static func names(in folder: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0.hasPrefix("core") }.sorted()
  }

  /// Lets this process and what it starts write them.
  static func allow() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
  }

  /// The dump of a shell that crashes in `folder`.
  static func ofShell(in folder: String, holding text: String) throws -> [UInt8] {
    let shell = Process()
    shell.executableURL = URL(filePath: "/bin/sh")
    shell.arguments = ["-c", "cd \"$1\" && ulimit -c unlimited && kill -SEGV $$", "sh", folder, text]
    try shell.run()
    shell.waitUntilExit()
    let name = try #require(names(in: folder).first, "the control wrote no core dump")
    return Array(try Data(contentsOf: URL(filePath: folder + "/" + name)))
  }
}

/// All that a process can read of its own memory.
private struct ProcessMemory {
  private let process: pid_t

  init(_ process: pid_t) { self.process = process }

  /// How often each of the secrets occurs.
  func count(of secrets: [String: [UInt8]]) throws -> [String: Int] {
    let memory = try Descriptor(open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC), "open")
    // To its very end: the system gives it in pieces.
    let list = try Descriptor(open("/proc/\(process)/maps", O_RDONLY | O_CLOEXEC), "open")
    let maps = String(decoding: list.read(until: nil), as: UTF8.self)
    var counts = secrets.mapValues { _ in 0 }
    var searched = 0
    for line in maps.split(separator: "\n") {
      let fields = line.split(separator: " ", omittingEmptySubsequences: true)
      let ends = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
      // What can be written: everything else is the program as it is on the disk.
      guard fields[1].hasPrefix("rw"), ends.count == 2 else { continue }
      var bytes = [UInt8](repeating: 0, count: Int(ends[1] - ends[0]))
      let count = bytes.count
      // A page that went meanwhile ends a read early; what is behind it counts as well.
      var read = 0
      while read < count {
        let more = bytes.withUnsafeMutableBytes {
          pread(memory.number, $0.baseAddress! + read, count - read, off_t(ends[0]) + off_t(read))
        }
        read += more > 0 ? more : 4096 - read % 4096
      }
      read = count
      searched += read
      for (name, secret) in secrets { counts[name, default: 0] += Self.count(of: secret, in: bytes[..<read]) }
    }
    #expect(searched > 10 << 20)
    return counts
  }

  private static func count(of secret: [UInt8], in bytes: ArraySlice<UInt8>) -> Int {
    bytes.withUnsafeBytes { bytes in
      var (count, place) = (0, 0)
      while place + secret.count <= bytes.count,
        let found = memchr(bytes.baseAddress! + place, CInt(secret[0]), bytes.count - place - secret.count + 1)
      {
        place = UnsafeRawPointer(found) - bytes.baseAddress!
        if memcmp(found, secret, secret.count) == 0 { count += 1 }
        place += 1
      }
      return count
    }
  }
}
