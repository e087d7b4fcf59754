import CofferTestSupport
import Foundation
import Glibc
import Testing

/// What the system around a command lacks is said, and done without harm.
struct SurroundingsTests {
  private let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
  }

  @Test(.enabled(if: geteuid() == 0, "only root may hide /proc from itself"))
  func `without proc a command says that it was not heard, and does nothing`() throws {
    for command in [
      "coffer lock --now", "coffer ls", "coffer no-such-command", "coffer unmount mnt", "coffer-server run",
    ] {
      let told = try desk.shell("unshare --mount sh -c 'mount -t tmpfs none /proc && \(command)'")
      #expect(told.code == 75 && told.output.isEmpty, "\(command): \(told)")
      #expect(told.errors.contains("/proc is not mounted"), "\(told.errors)")
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root may hide the list of users from itself"))
  func `who has no home is told so, and no other folder is taken for it`() throws {
    let told = try desk.shell(
      """
      unset HOME COFFER_KEY_STORE; mkdir empty
      unshare --mount sh -c 'mount --bind empty /etc && coffer init --vault new --no-recovery-key --passcode-file passcode'
      """)
    #expect(told.code == 64 && told.errors.contains("set HOME to a folder of yours"), "\(told)")
    #expect(!desk.exists("new"))
  }

  @Test(.enabled(if: geteuid() == 0, "only root may make a disk read-only"))
  func `on a disk that can only be read it is said what to do`() throws {
    for arguments in ["ls --passcode-file passcode", "info"] {
      let told = try desk.shell(
        """
        unshare --mount sh -c 'mount --bind vault vault && mount -o remount,ro,bind vault && coffer \(arguments)'
        """)
      #expect(told.code == 74 && told.errors.contains("copy its folder to another disk"), "\(arguments): \(told)")
    }
  }

  @Test(.enabled(if: geteuid() == 0, "a limit of processes binds only others"))
  func `where no process can be started it is worth another try`() throws {
    let told = try desk.shell(
      "chmod -R a+rwX . && prlimit --nproc=1 setpriv --reuid=65534 --clear-groups coffer unlock --passcode-file passcode"
    )
    #expect(told.code == 75, "\(told)")
  }

  @Test func `where agents have no folder it is said which, and who says so`() throws {
    desk.environment["XDG_RUNTIME_DIR"] = desk.path("passcode")
    let told = try desk.run("coffer", ["unlock", "--passcode-file", "passcode"])
    #expect(told.code != 0 && told.errors.contains(desk.path("passcode/coffer")), "\(told)")
    #expect(told.errors.contains("XDG_RUNTIME_DIR"), "\(told.errors)")
  }

  /// However little it is, a passcode for which there is no memory is not a wrong one, and the vault is not damaged.
  @Test func `a try for which there is no memory is none`() throws {
    desk.environment["COFFER_VAULT"] = desk.path("large")
    try desk.done("init", "--no-recovery-key")
    var isTold = false
    for mebibytes in stride(from: 60, to: 1000, by: 15) {
      let tried = try desk.shell("ulimit -v \(mebibytes << 10); coffer ls --passcode-file passcode")
      if tried.code == 0 { break }
      if tried.errors.contains("MiB of memory") {
        #expect(tried.code == 75, "\(tried)")
        isTold = true
      }
      #expect(!tried.errors.contains("damaged") && !tried.errors.contains("wrong"), "\(mebibytes): \(tried)")
    }
    #expect(isTold)
    try desk.done("ls")
  }

  @Test func `a limit of a file's size ends no command by a signal, nor the agent`() throws {
    try desk.write("large", [UInt8](repeating: 7, count: 3 << 20))
    try desk.write("small", "small")
    let put = try desk.shell("ulimit -f 1000; coffer put --passcode-file passcode large /large")
    #expect(put.code == 74 && !put.errors.isEmpty, "\(put)")
    let unlocked = try desk.shell("ulimit -f 1000; coffer unlock --passcode-file passcode")
    #expect(unlocked.code == 0, "\(unlocked)")
    #expect(try desk.run("coffer", ["put", "large", "/large"]).code == 74)
    try desk.served("put", "small", "/small")
    #expect(try desk.served("cat", "/small").output == "small")
    try desk.served("agent", "stop")
    try desk.done("verify", "--deep")
  }
}
