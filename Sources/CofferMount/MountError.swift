/// Why a mount could not be made or ended. Its description says what to do, and names no file and no program.
public enum MountError: Error, Sendable, Equatable, CustomStringConvertible {
  /// There is no /dev/fuse.
  case noDevice
  /// The process may not open /dev/fuse.
  case deviceRefused
  /// fusermount3 is not installed, and the process may not mount by itself.
  case noHelper
  /// The library or the kernel refused, and has said nothing of use.
  case failed
  /// The same for a mount that other users were to see, which not everybody may make.
  case othersRefused
  /// The system has no thread to give that would answer requests.
  case noThread
  /// Programs use files in it; those that can be told.
  case busy(MountUsers)
  /// Something else is mounted on a folder in it.
  case busyBelow
  /// Who serves it does not answer, and is not known.
  case silent
  /// Who may serve it does not answer.
  case maybeSilent
  /// Who serves it was killed, uses it, and cannot end; and this user may not end that.
  case killed(process: Int32)
  /// Another user has mounted it.
  case notYours
  /// It cannot be taken out of the tree in this name space of mounts.
  case locked
  case notMounted
  /// Something else is mounted there.
  case foreign
  /// The mount has ended, and what programs wrote last could not be stored; whether the disk is full, and whether something of what
  /// they had stored to mappings is lost.
  case notStored(isFull: Bool, arePagesLost: Bool)
  /// The mount has ended, and something of what programs had stored to mappings could not be stored: it is lost.
  case pagesLost

  /// It is used, and can be taken out of the tree all the same.
  public var isBusy: Bool {
    switch self {
    case .busy, .busyBelow: true
    default: false
    }
  }

  public var description: String { text(namingPrograms: false) }

  /// Of what the kernel gave back and nobody could take.
  public static let loss =
    "something that programs had stored to mappings of files could not be stored, and is lost; those that synced have been told"

  private static let silence =
    ": it has much to do, and it is enough to try again, or it was stopped, and goes on by: kill -CONT and its number. To take the mount "
    + "out of the tree all the same, use --force"

  /// - Parameter namingPrograms: as of ``MountUsers/text(naming:)``.
  public func text(namingPrograms: Bool) -> String {
    switch self {
    case .noDevice:
      "this system has no /dev/fuse; load it with: modprobe fuse (in a container: pass the device in)"
    case .deviceRefused:
      "this process may not open /dev/fuse: its permissions, or what this program or container is confined to, keep it from that"
    case .noHelper: "fusermount3 is not installed; on Debian: apt install fuse3"
    case .failed:
      "the system refused the mount; is the folder yours, and may you write in it? What else can be why: a container or a service "
        + "that gives no new privileges, a limit of mounts (mount_max in /etc/fuse.conf) or of open files"
    case .othersRefused:
      "the system refused a mount that other users can see; have the line user_allow_other put into /etc/fuse.conf, or "
        + "leave --allow-other out"
    case .noThread: "the system gives the agent no more threads; end other programs and try again"
    case .busy(let users):
      "programs use files in it\(users.isEmpty ? "" : " (\(users.text(naming: namingPrograms)))"); close them, or use --force"
    case .busyBelow: "something else is mounted on a folder in it; end that first, or use --force"
    case .silent: "the agent that serves it does not answer\(Self.silence)"
    case .maybeSilent: "an agent that may serve it does not answer\(Self.silence)"
    case .killed(let process):
      "its agent (process \(process)) was killed while it used this mount itself, and cannot end before the mount does, which is root's to "
        + "end here: sudo coffer unmount --force and this folder. With /sys/fs/fuse/connections mounted (mount -t fusectl) its user can"
    case .notYours: "another user has mounted it: they can end it, or root"
    case .locked:
      "the system lets nobody take it out of this name space of mounts; that ends with the last program in it"
    case .notMounted: "no vault is mounted there"
    case .foreign: "what is mounted there is no vault"
    case .pagesLost: "unmounted, but \(Self.loss)"
    case .notStored(let isFull, let arePagesLost):
      (isFull
        ? "unmounted, but the vault's disk is full: make room there"
        : "unmounted, but the vault's disk fails, or its folder was removed")
        + ". What programs wrote last is not stored yet; the agent has it and goes on trying, and what it has is lost if it ends before"
        + (arePagesLost ? ". And \(Self.loss)" : "")
    }
  }
}
