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

  /// As a user whom the system's list of users does not have, with the name of one that it has, in a folder `theirs`.
  private func strangerShell(_ line: String) throws -> RunningProgram.Outcome {
    try desk.shell(
      """
      mkdir -p bin theirs; chmod 755 . bin; cp -f "$(command -v coffer)" "$(command -v coffer-content-type)" bin
      cp -f passcode theirs; chown -R 54321 theirs; chmod 700 theirs; export PATH=$PWD/bin:$PATH; cd theirs
      unset HOME COFFER_KEY_STORE COFFER_VAULT XDG_RUNTIME_DIR XDG_STATE_HOME XDG_DATA_HOME
      export USER=root LOGNAME=root; setpriv --reuid=54321 --clear-groups sh -c '\(line)'
      """)
  }

  @Test(.enabled(if: geteuid() == 0, "only root may be another user"))
  func `who has no home is told so, and no other folder is taken for it`() throws {
    let told = try strangerShell("coffer init --vault new --no-recovery-key --passcode-file passcode")
    #expect(told.code == 64 && told.errors.contains("set HOME to a folder of yours"), "\(told)")
    #expect(!desk.exists("theirs/new"))
    let relative = try strangerShell("HOME=relative coffer init --vault new --no-recovery-key --passcode-file passcode")
    #expect(relative.code == 64 && relative.errors.contains("absolute"), "\(relative)")
    #expect(!desk.exists("theirs/new") && !desk.exists("theirs/relative"))
  }

  @Test(.enabled(if: geteuid() == 0, "only root may be another user"))
  func `who has no home needs none where the key store and the agent's folder are named`() throws {
    let made = try strangerShell(
      """
      export COFFER_KEY_STORE=$PWD/keys COFFER_VAULT=$PWD/new
      coffer init --no-recovery-key --passcode-file passcode && coffer put --passcode-file passcode passcode /file \\
        && mkdir -m 700 run && XDG_RUNTIME_DIR=$PWD/run coffer unlock --passcode-file passcode \\
        && XDG_RUNTIME_DIR=$PWD/run coffer cat /file && XDG_RUNTIME_DIR=$PWD/run coffer agent stop
      """)
    #expect(made.code == 0, "\(made)")
    let unlocked = try strangerShell(
      "COFFER_KEY_STORE=$PWD/keys COFFER_VAULT=$PWD/new coffer unlock --passcode-file passcode")
    #expect(unlocked.code == 64 && unlocked.errors.contains("set HOME"), "\(unlocked)")
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
    let wiped = try desk.shell(
      "unshare --mount sh -c 'mount --bind vault vault && mount -o remount,ro,bind vault && coffer wipe --yes'")
    #expect(wiped.code == 74 && wiped.errors.contains("the keys are destroyed"), "\(wiped)")
    #expect(try desk.run("coffer", ["ls", "--passcode-file", "passcode"]).code == 77)
    #expect(try desk.run("coffer", ["wipe", "--yes"]).code == 0)
    #expect(!desk.exists("vault"))
  }

  @Test(.enabled(if: geteuid() == 0, "a limit of processes binds only others"))
  func `where no process can be started it is worth another try`() throws {
    let vault = "export COFFER_KEY_STORE=$PWD/keys COFFER_VAULT=$PWD/new XDG_RUNTIME_DIR=$PWD;"
    let made = try strangerShell(vault + "coffer init --no-recovery-key --passcode-file passcode")
    try #require(made.code == 0, "\(made)")
    let told = try strangerShell(vault + "exec prlimit --nproc=1 coffer unlock --passcode-file passcode")
    #expect(told.code == 75 && told.errors.contains("posix_spawn"), "\(told)")
  }

  @Test func `where no more files can be opened it is worth another try`() throws {
    var isTold = false
    for limit in 4...40 {
      let told = try desk.shell("ulimit -n \(limit); coffer ls --passcode-file passcode")
      if told.code == 0 { break }
      guard told.errors.contains("Too many open files") else { continue }
      #expect(told.code == 75 && told.errors.contains("try again"), "\(limit): \(told)")
      isTold = true
    }
    #expect(isTold)
  }

  @Test func `where agents have no folder it is said which, and who says so`() throws {
    desk.environment["XDG_RUNTIME_DIR"] = desk.path("passcode")
    let told = try desk.run("coffer", ["unlock", "--passcode-file", "passcode"])
    #expect(told.code != 0 && told.errors.contains(desk.path("passcode/coffer")), "\(told)")
    #expect(told.errors.contains("XDG_RUNTIME_DIR"), "\(told.errors)")
  }

  /// However little it is, a passcode for which there is no memory is not a wrong one, and the vault is not damaged.
  @Test func `a try for which there is no memory is none`() throws {
    // Dear enough for a limit that leaves room for all the rest.
    desk.environment["COFFER_VAULT"] = desk.path("dear")
    try desk.makeVault(costExponent: 18)
    // More often than a wrong passcode would be let in.
    for _ in 1...12 {
      let tried = try desk.shell("ulimit -v \(400 << 10); coffer ls --passcode-file passcode")
      #expect(tried.code == 75 && tried.errors.contains("256 MiB of memory"), "\(tried)")
    }
    try desk.done("ls")
    for command in ["init --vault new --no-recovery-key", "passcode --new-passcode-file passcode"] {
      let refused = try desk.shell("ulimit -v 120000; coffer \(command) --passcode-file passcode")
      #expect(refused.code == 75 && refused.errors.contains("MiB of memory"), "\(refused)")
    }
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
