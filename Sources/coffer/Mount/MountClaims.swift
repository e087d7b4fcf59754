#if canImport(CofferMount)
  internal import CofferSystem
  internal import Synchronization

  /// Which mounts an agent serves: in a file that agents have in common each claims the byte of each of its mounts' device numbers. The system
  /// keeps a claim as long as it keeps the process's files, also of an agent that was killed and cannot end.
  final class MountClaims: Sendable {
    private let file: Mutex<OwnedDescriptor>

    /// - Parameter file: open for writing. The process loses its claims where it closes another descriptor of it.
    init(_ file: OwnedDescriptor) { self.file = Mutex(file) }

    /// Claims a mount that is served from now on. What cannot be claimed is ended by force alone where the agent is killed so.
    func take(_ device: String?) {
      guard let byte = Self.byte(of: device) else { return }
      file.withLock { _ = try? $0.claim(byte) }
    }

    /// Gives up the claim of a mount that is not served any more, unless there is another by the same number, which the system gives anew.
    func giveUp(_ device: String?, unless isServed: () -> Bool) {
      guard let byte = Self.byte(of: device) else { return }
      file.withLock { if !isServed() { try? $0.disclaim(byte) } }
    }

    /// The process that serves a mount; nil where none says so.
    static func claimant(of device: String) -> Int32? {
      guard let byte = byte(of: device) else { return nil }
      for case let process? in AgentPlace.claimFiles.map({ try? $0.claimant(of: byte) }) { return process }
      return nil
    }

    /// As `major:minor` (proc_pid_mountinfo(5)); no longer than the system's own numbers of 12 and 20 bits.
    private static func byte(of device: String?) -> UInt64? {
      let numbers = (device ?? "").split(separator: ":").map { UInt64($0) }
      guard numbers.count == 2, let major = numbers[0], let minor = numbers[1], major < 1 << 12, minor < 1 << 20
      else { return nil }
      return major << 20 | minor
    }
  }
#endif
