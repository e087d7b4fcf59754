import Foundation
import Glibc
import Testing

/// A mount by a user who is not root, through `fusermount3`, and what is said where a part of the system is missing. All of it is
/// tried in a name space of mounts in which /dev/fuse is everybody's.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct OrdinaryUserTests {
  /// A user and one more, whom fusermount3 finds by their names.
  private static let user = (name: "nobody", number: 65534)
  private static let stranger = (name: "daemon", number: 1)

  private static let isPossible =
    geteuid() == 0
    && ["/usr/bin/setpriv", "/usr/bin/unshare", "/usr/bin/fusermount3"].allSatisfy {
      FileManager.default.isExecutableFile(atPath: $0)
    }
    && [user, stranger].allSatisfy { person in getpwnam(person.name).map { Int($0.pointee.pw_uid) } == person.number }

  let desk: Desk

  init() throws {
    desk = try Desk()
    for name in ["bin", "mnt", "device", "stranger"] { try Kernel.mkdir(desk.path(name)) }
    // The folder in which they were built may be root's alone.
    for name in ["coffer", "coffer-content-type"] {
      try FileManager.default.copyItem(
        atPath: RunningProgram.folder.appending(path: name).path, toPath: desk.path("bin/\(name)"))
    }
  }

  /// Runs a script in its own name space of mounts, where `user` and `stranger` run a program as these, and all that is here but
  /// the stranger's folder is the user's.
  private func run(_ script: String) throws -> RunningProgram.Outcome {
    try desk.write("script", Self.beginning + script)
    return try desk.run("/usr/bin/unshare", ["--mount", "/bin/bash", "script"])
  }

  private static let beginning = """
    as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
    user() { as \(user.number) "$@"; }
    stranger() { as \(stranger.number) env XDG_RUNTIME_DIR="$PWD/stranger" "$@"; }
    mount -t tmpfs none device && mknod -m 666 device/fuse c 10 229 && mount --bind device/fuse /dev/fuse || exit 70
    chown -R \(user.number) . && chown \(stranger.number) stranger && chmod 711 . && chmod -R a+rX bin
    user bin/coffer init --passcode-file passcode > made 2>&1 || { cat made; exit 71; }
    exec 2>&1
    user bin/coffer unlock --passcode-file passcode > unlocked || { cat unlocked; exit 72; }

    """

  @Test(.enabled(if: isPossible, "needs root, setpriv, unshare, fusermount3, and the users nobody and daemon"))
  func `an ordinary user mounts, is alone in there, and unmounts`() throws {
    let outcome = try run(
      """
      user bin/coffer mount mnt > said; echo "mount $?"
      user bash -c 'echo text > mnt/file && cat mnt/file'
      grep " $PWD/mnt " /proc/self/mountinfo | grep -o 'user_id=[0-9]*\\|nosuid,nodev\\|default_permissions\\|allow_other'
      for person in stranger root; do
        if [ $person = root ]; then cat mnt/file; else $person cat mnt/file; fi; echo "$person $?"
      done
      stranger bin/coffer unmount "$PWD/mnt"; echo "unmount $?"
      user chmod 700 vault
      for words in ls lock "agent status"; do stranger env COFFER_VAULT="$PWD/vault" bin/coffer $words; echo "$words $?"; done
      user cat mnt/file
      user bin/coffer unmount mnt; echo "unmount $?"
      user bin/coffer agent stop
      """)
    let refused = "coffer: \(desk.path("vault")) is not yours to read, or a folder above it is not yours to pass\n"
    #expect(
      outcome.output == """
        mount 0
        text
        nosuid,nodev
        user_id=\(Self.user.number)
        default_permissions
        cat: mnt/file: Permission denied
        stranger 1
        cat: mnt/file: Permission denied
        root 1
        coffer: another user has mounted it: they can end it, or root
        unmount 77
        \(refused)ls 77
        \(refused)lock 77
        \(refused)agent status 77
        text
        coffer: unmounted
        unmount 0
        the agent has ended

        """)
  }

  @Test(.enabled(if: isPossible, "needs root, setpriv, unshare, fusermount3, and the users nobody and daemon"))
  func `who lacks a part of the system is told which, and what brings it`() throws {
    let outcome = try run(
      """
      echo '# nobody may' > device/conf && mount --bind device/conf /etc/fuse.conf
      user bin/coffer mount --allow-other mnt; echo "for others $?"
      mount --bind /dev/null /usr/bin/fusermount3
      user bin/coffer mount mnt; echo "no helper $?"
      umount /usr/bin/fusermount3
      chmod 0 device/fuse
      user bin/coffer mount mnt; echo "no right $?"
      mount -t tmpfs none /dev
      user bin/coffer mount mnt; echo "no device $?"
      umount /dev && chmod 666 device/fuse
      user bin/coffer mount mnt > said; echo "all there $?"
      user bin/coffer agent stop
      """)
    #expect(
      outcome.output == """
        coffer: the system refused a mount that other users can see; have the line user_allow_other put into /etc/fuse.conf, or leave --allow-other out
        for others 73
        coffer: fusermount3 is not installed; on Debian: apt install fuse3
        no helper 69
        coffer: this process may not open /dev/fuse: its permissions, or what this program or container is confined to, keep it from that
        no right 69
        coffer: this system has no /dev/fuse; load it with: modprobe fuse (in a container: pass the device in)
        no device 69
        all there 0
        the agent has ended

        """)
  }

  /// Where processors halt at once, and nobody but root may ask the kernel to let them wait. Elsewhere it shows that there is none.
  @Test(.enabled(if: isPossible, "needs root, setpriv, unshare, fusermount3, and the users nobody and daemon"))
  func `one thread keeps a processor from halting, behind all others, for all mounts, and not with --save-power`()
    throws
  {
    try desk.write(
      "count",
      """
      import json, os, subprocess, sys
      def text(path):
          try: return open(path).read()
          except OSError: return ""
      driver = text("/sys/devices/system/cpu/cpuidle/current_driver")
      halts = driver == "haltpoll\\n" and text("/sys/module/haltpoll/parameters/guest_halt_poll_ns") == "0\\n"
      wanted = halts and os.sysconf("SC_NPROCESSORS_ONLN") == 2 == len(os.sched_getaffinity(0))
      process = json.loads(sys.stdin.read())["process"]
      def count():
          classes = []
          for thread in os.listdir(f"/proc/{process}/task"):
              try: classes.append(os.sched_getscheduler(int(thread)))
              except ProcessLookupError: pass
          return classes.count(os.SCHED_IDLE)
      expected = int(sys.argv[1]) if wanted else 0
      # A thread takes a moment to step back, or to end.
      while count() != expected: os.sched_yield()
      print("as expected")
      """)
    let outcome = try run(
      """
      threads() { user bin/coffer agent status --json | timeout 60 python3 count $1; }
      user mkdir second
      user bin/coffer mount --save-power mnt > said
      user bash -c 'for n in $(seq 500); do echo $n > mnt/$n; cat mnt/$n; done' > said; threads 0
      user bin/coffer unmount mnt
      user bin/coffer mount mnt > said; user bin/coffer mount second > said 2>&1
      user bash -c 'for n in $(seq 500); do echo $n > mnt/$n; cat second/$n; done' > said; threads 1
      user bin/coffer unmount second; user ls -lR mnt > said; threads 1
      user bin/coffer unmount mnt; threads 0
      user bin/coffer agent stop
      """)
    #expect(
      outcome.output
        == "as expected\ncoffer: unmounted\n"
        + "as expected\ncoffer: unmounted\nas expected\ncoffer: unmounted\nas expected\nthe agent has ended\n")
  }
}
