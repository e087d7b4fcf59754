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
  /// Whether a process is such an agent.
  public static func stays(_ process: Int32) -> Bool { Process(process)?.isKilled ?? false }

  /// Ends the connections of the mounts that such an agent serves, so far as this user may: they are without a server then, as after any crash,
  /// or gone. `false` where the agent stays all the same.
  ///
  /// - Parameter mounts: their devices, and where each is seen, canonical paths.
  public static func end(_ process: Int32, with mounts: [(device: String, place: String)]) -> Bool {
    for (device, place) in mounts where Mounts.device(at: place) == device { _ = endConnection(device, place) }
    for _ in 0..<tries where stays(process) { usleep(pause) }
    return !stays(process)
  }

  /// Ends the connection of a mount that answers nobody, where there is such an agent: `true` where that was done, so far as this user may. Which
  /// agent it belongs to is not told: so only where somebody has said that it shall end whoever uses it.
  ///
  /// - Parameters:
  ///   - device: of the mount.
  ///   - place: where it is seen, a canonical path.
  public static func end(_ device: String, at place: String) -> Bool {
    let killed = all
    // A mount of one that was stopped answers nobody either.
    guard !killed.isEmpty, !processes.contains(where: \.isStopped), Mounts.device(at: place) == device,
      endConnection(device, place)
    else { return false }
    // It closes its files.
    for _ in 0..<tries where all.contains(where: killed.contains) { usleep(pause) }
    return true
  }

  private static let (tries, pause) = (200, UInt32(10_000))

  /// By the file system for that, where it is mounted; root may do without.
  private static func endConnection(_ device: String, _ place: String) -> Bool {
    let number = device.split(separator: ":").last ?? ""
    let file = open("/sys/fs/fuse/connections/\(number)/abort", O_WRONLY | O_CLOEXEC)
    if file >= 0 {
      defer { close(file) }
      return write(file, "1", 1) == 1
    }
    // Ends the connection first, and takes the mount away where nobody uses it.
    return umount2(place, CInt(MNT_FORCE) | CInt(UMOUNT_NOFOLLOW)) == 0 || errno == EBUSY
  }

  private struct Process {
    let number: Int32
    let state: Character
    let taskCount: Int

    /// Nil where it is gone, or of another program (proc_pid_stat(5)).
    init?(_ number: Int32) {
      guard let text = try? KernelFile.text(of: "/proc/\(number)/stat"), let name = text.range(of: " (coffer) "),
        let state = text[name.upperBound...].first
      else { return nil }
      self.number = number
      self.state = state
      taskCount = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(number)/task"))?.count ?? 0
    }

    var isStopped: Bool { state == "T" || state == "t" }
    /// Its first thread has ended, and others have not.
    var isKilled: Bool { state == "Z" && taskCount > 1 }
  }

  private static var all: [Int32] { processes.filter(\.isKilled).map(\.number) }

  /// This user's processes of the program.
  private static var processes: [Process] {
    let numbers = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { Int32($0) }
    return numbers.compactMap { number in
      var found = stat()
      guard stat("/proc/\(number)", &found) == 0, found.st_uid == geteuid() || geteuid() == 0 else { return nil }
      return Process(number)
    }
  }
}
