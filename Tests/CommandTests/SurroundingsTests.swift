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
  func `what its owner may not write to is wiped all the same`() throws {
    let wiped = try strangerShell(
      """
      export COFFER_KEY_STORE=$PWD/keys COFFER_VAULT=$PWD/new
      coffer init --no-recovery-key --passcode-file passcode || exit
      chmod 400 keys/*/* new/keybag.json; coffer wipe --yes && ls -d keys/* new
      """)
    #expect(wiped.output.contains("wiped") && wiped.code == 2 && !desk.exists("theirs/new"), "\(wiped)")
    #expect(desk.listing("theirs/keys") == [])
  }

  @Test(.enabled(if: geteuid() == 0, "only root may be another user"))
  func `whose vault it is not is told so`() throws {
    try desk.write("theirs.key", "")
    for command in ["wipe --yes", "wipe --yes --all-copies", "accept-restored --yes", "recover --recovery-key-file no"]
    {
      let told = try strangerShell("export HOME=$PWD COFFER_VAULT=\(desk.path("vault")); coffer \(command)")
      #expect(told.code == 77 && told.errors.contains("is not yours to read"), "\(command): \(told)")
    }
    #expect(desk.exists("vault/keybag.json"))
  }

  @Test func `what was typed in a wrong place gets into no log`() throws {
    for command in [
      "unlock Secret7", "stat /my Secret7", "mkdir my Secret7", "mv /a /b Secret7", "ls --depth=Secret7", "Secret7",
      "unlock --idle-lock Secret7", "stat -- /a -Secret7", "ls --depth=-Secret7",
      "stat /a -Secret7", "ls --Secret7", "stat /a b$(seq -f ' Secret7%g' 300)",
    ] {
      let told = try desk.shell("coffer \(command)")
      #expect(told.code == 64 && !told.errors.isEmpty && !told.errors.contains("Secret7"), "\(command): \(told)")
    }
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
    for command in ["lock --now", "agent status", "agent stop"] {
      let told = try strangerShell(
        "COFFER_KEY_STORE=$PWD/keys COFFER_VAULT=$PWD/new XDG_STATE_HOME=relative coffer \(command)")
      #expect(told.code == 64 && told.errors.contains("absolute"), "\(command): \(told)")
    }
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

  @Test(
    .enabled(if: geteuid() == 0, "only root may make a disk read-only"),
    arguments: ["device-secret", "rotation", "escrow", ".0123456789abcdef.new"])
  func `a wipe that cannot destroy a key does not say that it did`(_ item: String) throws {
    try #require(
      try desk.shell("test -e keys/*/\(item) || (umask 77; cp keys/*/rotation $(echo keys/*)/\(item))").code == 0)
    let isVaultFixed = "mount --bind vault vault && mount -o remount,ro,bind vault"
    for fixed in ["true", isVaultFixed] {
      let told = try desk.shell(
        """
        unshare --mount sh -c 'key=$(echo keys/*/\(item)); mount --bind $key $key && mount -o remount,ro,bind $key && \(fixed) \
          && coffer wipe --yes'
        """)
      #expect(told.code == 74 && told.output.isEmpty, "\(told)")
      #expect(
        told.errors.contains("Keys of the vault are left") && !told.errors.contains("are destroyed"), "\(told.errors)")
    }
    // Whatever keeps the one keeps no other.
    let left = try desk.shell("ls -A keys/*").output.split(separator: "\n").map(String.init)
    #expect(left.filter { !["attempts", "anchor", "place", "lock", "wiped"].contains($0) } == [item], "\(left)")
    #expect(try desk.run("coffer", ["wipe", "--yes"]).code == 0)
    #expect(!desk.exists("vault"))
  }

  /// The keys are overwritten, and nothing could be removed, nor a mark be left: what is there of them is no key.
  @Test(.enabled(if: geteuid() == 0, "only root may be another user"))
  func `keys that were overwritten and could not be removed are none`() throws {
    let vault = "export COFFER_KEY_STORE=$PWD/keys COFFER_VAULT=$PWD/new XDG_RUNTIME_DIR=$PWD;"
    let made = try strangerShell(
      vault
        + "coffer init --recovery-key-file recovery --passcode-file passcode && coffer ls --passcode-file passcode && cp -r new copy"
    )
    try #require(made.code == 0, "\(made)")
    let told = try strangerShell(vault + "chmod 500 keys/*; coffer wipe --yes")
    #expect(told.code == 74 && told.errors.contains("the keys are destroyed"), "\(told)")
    let isZero = #"test -f keys/*/device-secret && ! tr -d "\\0" < $(echo keys/*/device-secret) | grep -q ."#
    #expect(try strangerShell(isZero).code == 0)
    #expect(try strangerShell(vault + "chmod 700 keys/*; coffer ls --passcode-file passcode").code == 77)
    // No copy is taken for the vault.
    let refused = try strangerShell(vault + "coffer wipe --yes --vault copy")
    #expect(refused.code == 77 && desk.exists("theirs/copy/keybag.json"), "\(refused)")
    // And no vault gets zeros for its secret.
    let recovered = try strangerShell(
      vault + "rm -r new && mv copy new && coffer recover --recovery-key-file recovery --new-passcode-file passcode")
    #expect(recovered.code == 0, "\(recovered)")
    #expect(try strangerShell(isZero).code == 1)
    #expect(try strangerShell(vault + "coffer ls --passcode-file passcode").code == 0)
  }

  @Test(.enabled(if: geteuid() == 0, "only root may be another user"), arguments: ["", " --all-copies"])
  func `a wipe that could only overwrite the keys can be finished`(_ option: String) throws {
    let vault = "export COFFER_KEY_STORE=$PWD/keys COFFER_VAULT=$PWD/new XDG_RUNTIME_DIR=$PWD;"
    let cut = try strangerShell(
      vault
        + "coffer init --no-recovery-key --passcode-file passcode && coffer ls --passcode-file passcode && chmod 500 keys/*; coffer wipe --yes"
    )
    try #require(cut.code == 74, "\(cut)")
    let finished = try strangerShell(vault + "chmod 700 keys/*; coffer wipe --yes" + option)
    #expect(finished.code == 0 && !desk.exists("theirs/new"), "\(finished)")
    #expect(try desk.shell("ls -A theirs/keys").output.isEmpty)
  }

  /// What would say what else opens a copy cannot be read: the keys go all the same.
  @Test func `a keybag that cannot be read keeps no key`() throws {
    #expect(try desk.shell("mv vault/keybag.json kept; mkdir vault/keybag.json").code == 0)
    #expect(try desk.shell("cp -r vault copy; rmdir copy/keybag.json; mv kept copy/keybag.json").code == 0)
    let told = try desk.run("coffer", ["wipe", "--yes"])
    #expect(told.code == 77 && told.errors.contains("--all-copies"), "\(told)")
    let every = try desk.run("coffer", ["wipe", "--yes", "--all-copies"])
    #expect(every.code == 0 && every.output.contains("nothing is left that says"), "\(every)")
    #expect(!desk.exists("vault"))
    #expect(try desk.run("coffer", ["ls", "--vault", "copy", "--passcode-file", "passcode"]).code == 77)
  }

  /// The headers are small; whoever made one large must not have the disk filled with zeros, nor keep a key by it.
  @Test func `what was made long is not written over to its end`() throws {
    #expect(try desk.shell("truncate -s 1T vault/keybag.json vault/.0123456789abcdef.new keys/*/rotation").code == 0)
    let told = try desk.run("coffer", ["wipe", "--yes", "--all-copies", "--json"])
    #expect(told.code == 0 && !told.output.contains("recoveryKey"), "\(told)")
    #expect(!desk.exists("vault"))
    #expect(try desk.shell("ls -A keys").output.isEmpty)
  }

  /// The mark of a wipe needs a file. That there is none for it keeps no key, and the wipe is known and finished all the same.
  @Test(.enabled(if: geteuid() == 0, "only root may make a small disk"))
  func `a wipe whose key store has no room leaves nothing, nor its agent`() throws {
    let told = try desk.shell(
      """
      export COFFER_KEY_STORE=$PWD/small; mkdir -m 700 small
      unshare --mount sh -ec '
        mount -t tmpfs -o size=64k,mode=700 none small; cp -a keys/. small
        coffer unlock --passcode-file passcode > /dev/null
        cat /dev/zero > small/fill 2> /dev/null || true
        if sh -c "echo > small/more" 2> /dev/null; then exit 3; fi
        coffer wipe --yes; rm small/fill small/more; ls -A small'
      """)
    #expect(told.code == 0 && told.output.hasPrefix("wiped"), "\(told)")
    #expect(told.output.split(separator: "\n").count == 1, "\(told.output)")
    #expect(!desk.exists("vault"))
  }

  @Test(.enabled(if: geteuid() == 0, "only root may make a disk read-only"))
  func `an agent ends where its vault's keys are destroyed, whatever could not be removed`() throws {
    try desk.write("secret", "secret")
    try desk.done("put", "secret", "/secret")
    try desk.done("unlock")
    let told = try desk.shell(
      "unshare --mount sh -c 'mount --bind vault vault && mount -o remount,ro,bind vault && coffer wipe --yes'")
    #expect(told.code == 74 && told.errors.contains("the keys are destroyed"), "\(told)")
    #expect(!told.errors.contains("has the vault open"), "\(told.errors)")
    #expect(try desk.run("coffer", ["cat", "--passcode-file", "passcode", "/secret"]).code == 77)
  }

  @Test(.enabled(if: geteuid() == 0, "only root may change what the list of users says"))
  func `a home in the list of users that is no path is none`() throws {
    let told = try desk.shell(
      """
      sed "s,^\\(root:[^:]*:0:0:[^:]*\\):[^:]*:,\\1::," /etc/passwd > passwd; unset HOME COFFER_KEY_STORE XDG_STATE_HOME XDG_DATA_HOME
      unshare --mount sh -c 'mount --bind passwd /etc/passwd && coffer init --vault new --no-recovery-key --passcode-file passcode'
      """)
    #expect(told.code == 64 && told.errors.contains("set HOME to a folder of yours"), "\(told)")
    #expect(!desk.exists("new"))
  }

  @Test(.enabled(if: geteuid() == 0, "a limit of processes binds only others"))
  func `where no process can be started it is worth another try`() throws {
    let vault = "export COFFER_KEY_STORE=$PWD/keys COFFER_VAULT=$PWD/new XDG_RUNTIME_DIR=$PWD;"
    let made = try strangerShell(vault + "coffer init --recovery-key-file recovery --passcode-file passcode")
    try #require(made.code == 0, "\(made)")
    let told = try strangerShell(vault + "exec prlimit --nproc=1 coffer unlock --passcode-file passcode")
    #expect(told.code == 75 && told.errors.contains("posix_spawn"), "\(told)")
    // Nor a thread: nobody waits until there is one.
    for command in [
      "ls --passcode-file passcode", "put --passcode-file passcode passcode /file",
      "policy refresh --passcode-file passcode",
      "enroll https://127.0.0.1:1 ABCDEFGH --passcode-file passcode",
    ] {
      let told = try strangerShell(vault + "exec timeout -s KILL 60 prlimit --nproc=1 coffer \(command)")
      #expect(told.code == 75 && told.errors.contains("pthread_create"), "\(command): \(told)")
    }
    #expect(try strangerShell(vault + "coffer ls --passcode-file passcode").output.isEmpty)
    let recover =
      "coffer recover --recovery-key-file recovery --new-recovery-key-file new-recovery --new-passcode-file new-passcode"
    let refused = try strangerShell(
      vault + "echo another > new-passcode; exec timeout -s KILL 60 prlimit --nproc=1 \(recover)")
    #expect(
      refused.code == 75 && refused.errors.contains("pthread_create"),
      "\(refused)")
    #expect(try strangerShell(vault + "coffer ls --passcode-file passcode").code == 0)
    let other = "coffer init --vault other --no-recovery-key --passcode-file passcode"
    #expect(try strangerShell(vault + "exec timeout -s KILL 60 prlimit --nproc=1 \(other)").code == 75)
    #expect(try strangerShell(vault + other).code == 0)
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
    // Dear enough for a limit that leaves room for all the rest, whatever that is: less than what a try takes, and a third of it.
    desk.environment["COFFER_VAULT"] = desk.path("dear")
    try desk.makeVault(costExponent: 18)
    // More often than a wrong passcode would be let in.
    for _ in 1...12 {
      let tried = try desk.shell("ulimit -v \(300 << 10); coffer ls --passcode-file passcode")
      #expect(tried.code == 75 && tried.errors.contains("256 MiB of memory"), "\(tried)")
    }
    try desk.done("ls")
    let refused = try desk.shell(
      "ulimit -v \(300 << 10); coffer passcode --new-passcode-file passcode --passcode-file passcode")
    #expect(refused.code == 75 && refused.errors.contains("MiB of memory"), "\(refused)")
  }

  /// How much the program takes before it asks differs from machine to machine; with less it is not even begun.
  @Test func `no vault is made for whose passcode there is no memory`() throws {
    var isTold = false
    for limit in stride(from: 96, through: 480, by: 8) {
      let told = try desk.shell(
        "ulimit -v \(limit << 10); coffer init --vault new --no-recovery-key --passcode-file passcode")
      if told.code == 0 { break }
      #expect(!desk.exists("new/coffer.json"), "\(limit): \(told)")
      guard told.errors.contains("MiB of memory") else { continue }
      #expect(told.code == 75, "\(limit): \(told)")
      isTold = true
    }
    #expect(isTold)
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
