internal import CFuse3
internal import CofferSystem
internal import Foundation
internal import Glibc

/// An agent that was killed, and stays.
///
/// While it does what a command has asked it may use a mount of its own: files that are put into the vault from there. Who waits for an
/// answer that somebody has taken cannot be killed (request_wait_answer of the kernel), and nobody answers any more; but the system closes a process's files, and
/// with them the mount's device, only when its last thread has ended. So it waits for ever, the mount answers nobody, and the vault stays
/// locked, until somebody ends the mount's connection.
public enum KilledServer {
  /// Ends the connections of such agents, so far as this user may; `true` where there were some. Their mounts are without a server
  /// then, as after any crash.
  public static func end() -> Bool {
    let killed = all
    // Those of an agent that was stopped answer nobody either.
    guard !killed.isEmpty, !processes.contains(where: \.isStopped) else { return false }
    var hasEnded = false
    for entry in MountTable.present.entries
    where entry.isVault && (entry.user == geteuid() || geteuid() == 0) && Mounts.server(at: entry.shownPlace) == .silent
    {
      // It may just have been about to end, while another agent was busy for as long as nobody answered.
      if all.contains(where: killed.contains), endConnection(entry) { hasEnded = true }
    }
    // They close their files.
    for _ in 0..<tries where hasEnded && all.contains(where: killed.contains) { usleep(pause) }
    return hasEnded
  }

  private static let (tries, pause) = (200, UInt32(10_000))

  /// By the file system for that, where it is mounted; root may do without.
  private static func endConnection(_ entry: MountTable.Entry) -> Bool {
    let number = entry.device.split(separator: ":").last ?? ""
    let file = open("/sys/fs/fuse/connections/\(number)/abort", O_WRONLY | O_CLOEXEC)
    if file >= 0 {
      defer { close(file) }
      return write(file, "1", 1) == 1
    }
    // Ends the connection first, and takes the mount away where nobody uses it.
    return umount2(entry.shownPlace, CInt(MNT_FORCE) | CInt(UMOUNT_NOFOLLOW)) == 0 || errno == EBUSY
  }

  private struct Process {
    let number: Int32
    let state: Substring
    let session: Int32?
    let exitCode: Int32?
    let taskCount: Int

    var isStopped: Bool { state == "T" || state == "t" }

    /// Its first thread has ended, others have not, and what ended it was no wish of its own. A command that has given up waiting for a busy
    /// agent may stay as well, until that answers; but it leads no session.
    var isKilled: Bool {
      state == "Z" && taskCount > 1 && session == number && exitCode.map { Self.signals.contains($0 & 0x7f) } == true
    }

    private static let signals = [SIGKILL, SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP]
  }

  private static var all: [Int32] { processes.filter(\.isKilled).map(\.number) }

  /// This user's processes of the program (proc_pid_stat(5)).
  private static var processes: [Process] {
    let numbers = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { Int32($0) }
    return numbers.compactMap { number in
      var found = stat()
      guard stat("/proc/\(number)", &found) == 0, found.st_uid == geteuid() || geteuid() == 0,
        let text = try? KernelFile.text(of: "/proc/\(number)/stat"), let name = text.range(of: " (coffer) ")
      else { return nil }
      // From the third on.
      let fields = text[name.upperBound...].split(whereSeparator: \.isWhitespace)
      guard fields.count > 49 else { return nil }
      let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(number)/task")) ?? []
      return Process(
        number: number, state: fields[0], session: Int32(fields[3]), exitCode: Int32(fields[49]), taskCount: tasks.count
      )
    }
  }
}
