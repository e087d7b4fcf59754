import CofferTestSupport
import Foundation
import Glibc
import Testing

/// What comes into the vault by two ways at a time: two mounts, or a mount and other commands.
@Suite(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"))
final class SeveralWaysTests: MountDesk {
  @Test func `other commands' changes are seen at once, whatever the kernel remembers`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/folder && echo one > mnt/folder/file && ls mnt/folder && ! stat mnt/folder/new 2>/dev/null")
    try desk.served("put", "passcode", "/folder/new")
    #expect(try shell("ls mnt/folder; cat mnt/folder/new") == "file\nnew\n\(Desk.passcode)\n")
    try desk.write("other", "two\n")
    try desk.served("put", "other", "/folder/file")
    #expect(try shell("cat mnt/folder/file") == "two\n")
    try desk.served("mv", "/folder/new", "/moved")
    try fails("cat mnt/folder/new", "No such file")
    #expect(try shell("cat mnt/moved; ls mnt; ls mnt/folder") == "\(Desk.passcode)\nfolder\nmoved\nfile\n")
    try desk.served("rm", "-r", "/folder")
    #expect(try shell("ls mnt") == "moved\n")
    // Through the agent and its own mount.
    try desk.served("put", "mnt/moved", "/again")
    #expect(try shell("cat mnt/again") == Desk.passcode + "\n")
    try desk.served("get", "/again", "mnt/once-more")
    #expect(try desk.served("cat", "/once-more").output == Desk.passcode + "\n")
  }

  /// A program may hold what a command or another mount removes.
  @Test func `what another way removes stays for who holds it, and then goes`() throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    try shell("mkdir mnt/folder mnt/other && ln -s nowhere mnt/link")
    for name in ["one", "two"] { try Kernel.makeFile(desk.path("mnt/" + name), noise(200_000)) }
    func hold() throws {
      func handle(_ name: String, _ flags: CInt = GNU.pathOnly | O_NOFOLLOW) throws -> Handle {
        try Handle(desk.path("mnt/" + name), flags)
      }
      let (one, two, link) = (try handle("one"), try handle("two"), try handle("link"))
      let (folder, other) = (try handle("folder", O_RDONLY), try handle("other", O_RDONLY))
      for name in ["/one", "/link"] { try desk.served("rm", name) }
      try desk.served("rm", "-r", "/folder")
      try shell("rm second/two && rmdir second/other")
      for name in ["one", "two", "folder", "other", "link"] {
        while try Kernel.exists(desk.path("mnt/" + name)) { sched_yield() }
      }
      for file in [one, two] {
        #expect(try Handle("/proc/self/fd/\(file.number)", O_RDWR).readAll() == noise(200_000))
        #expect(try file.stat().links == 0)
      }
      for folder in [folder, other] {
        #expect(try folder.stat().links == 0)
        #expect(outcome { _ = try folder.listing() } == CallError(ENOENT))
        try folder.setAttribute("user.mark", [1])
        #expect(try folder.attribute("user.mark") == [1])
        #expect(
          outcome { try CallError.check(openat(folder.number, "new", O_CREAT | O_RDWR, 0o644)) } == CallError(ENOENT))
      }
      #expect(try Kernel.readLink("/proc/self/fd/\(link.number)").hasSuffix("(deleted)"))
      // Also behind a commit, which has to say that they will go.
      try Handle(desk.path("mnt"), O_RDONLY).sync()
      #expect(try Handle("/proc/self/fd/\(one.number)", O_RDONLY).readAll() == noise(200_000))
      #expect(try desk.served("verify", "--deep").output.contains("intact"))
    }
    try hold()
    for place in ["second", "mnt"] { try desk.served("unmount", place) }
    try desk.served("agent", "stop")
    #expect(try shell("find vault/objects -type f") == "")
    try desk.done("verify", "--deep")
  }

  /// The kernel takes a name that it is told to forget for a folder's end, until somebody looks the new one up.
  @Test func `whoever stands in a folder that another way moves knows where it is`() throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    try shell("mkdir -p mnt/one/inner mnt/two mnt/empty mnt/far/away/deep")
    let program = """
      import ctypes, os, subprocess, sys
      libc, top = ctypes.CDLL(None, use_errno=True), os.getcwd()
      def stands(folder):
          return os.readlink("/proc/self/fd/%d" % folder)[len(top):]
      def move(flags, old, new):
          if libc.renameat2(-100, (top + "/" + old).encode(), -100, (top + "/" + new).encode(), flags) != 0:
              sys.exit(os.strerror(ctypes.get_errno()))
      def command(*arguments):
          subprocess.run(["coffer", *arguments], cwd=top, check=True)
      one, two, inner = (os.open("mnt/" + name, os.O_RDONLY) for name in ("one", "two", "one/inner"))
      for place in one, inner:
          os.chdir(place)
          def check(*expected):
              found = [stands(one), stands(inner), stands(two), os.getcwd()[len(top):]]
              found[3] == found[0 if place == one else 1] or sys.exit("stands in " + found[3])
              print(*(name.removeprefix("/mnt/") for name in found[:3]))
          # The kernel remembers that there is no such name.
          os.path.exists(top + "/mnt/new") and sys.exit("is there")
          move(0, "second/one", "second/new"); check()
          move(0, "second/new", "second/empty"); check()
          move(0, "second/empty", "second/far/away/deep/one"); check()
          move(2, "second/far/away/deep/one", "second/two"); check()
          move(2, "second/two", "second/far/away/deep/one"); check()
          move(0, "second/far/away", "second/away"); check()
          command("mv", "/away/deep/one", "/one"); check()
          command("mv", "/away", "/far/away"); command("mkdir", "/empty"); check()
      print(os.listdir("../inner"), sorted(os.listdir("..")))
      """
    let shown = [
      "new new/inner two", "empty empty/inner two", "far/away/deep/one far/away/deep/one/inner two",
      "two two/inner far/away/deep/one", "far/away/deep/one far/away/deep/one/inner two",
      "away/deep/one away/deep/one/inner two", "one one/inner two", "one one/inner two",
    ]
    let outcome = try desk.shell("python3 -c '\(program)'")
    #expect(outcome.errors == "")
    #expect(outcome.output == (shown + shown + ["[] ['inner']"]).map { $0 + "\n" }.joined())
  }

  /// The kernel moves none out of a folder that a program has just locked.
  @Test func `a folder that another way moves is found though programs change what lies beside it`() throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    try shell("mkdir -p mnt/from/moved mnt/to")
    let program = """
      import os, threading
      folder, isDone = os.open("mnt/from/moved", os.O_RDONLY), False
      def change():
          while not isDone:
              os.close(os.open("mnt/from/beside", os.O_CREAT | os.O_WRONLY))
              os.unlink("mnt/from/beside")
      changing = threading.Thread(target=change)
      changing.start()
      for _ in range(30):
          for old, new in ("from", "to"), ("to", "from"):
              os.rename("second/" + old + "/moved", "second/" + new + "/moved")
              while not os.readlink("/proc/self/fd/%d" % folder).endswith("/mnt/" + new + "/moved"): pass
      isDone = True
      changing.join()
      print("found")
      """
    #expect(try shell("python3 -c '\(program)'") == "found\n")
  }

  @Test(.enabled(if: MountedDisk.isPossible, "only root may mount"))
  func `what is mounted in a folder that another way moves stays there`() throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    try shell(
      "mkdir -p mnt/folder/inner mnt/to && mount -t tmpfs none mnt/folder/inner && echo kept > mnt/folder/inner/file")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount mnt/*/inner mnt/*/*/inner"]) }
    try shell("ls mnt; mv second/folder second/moved && cat mnt/moved/inner/file")
    // Also where the kernel has come upon it there before it hears of that, and where it was told of no such name.
    #expect(
      try shell("ls mnt/to; mv second/moved second/to/again && cat mnt/to/again/inner/file && ls mnt") == "kept\nto\n")
    try desk.served("mv", "/to/again", "/folder")
    #expect(try shell("cat mnt/folder/inner/file; ls second/folder/inner") == "kept\n")
    // What is mounted there learns nothing.
    try desk.served("mkdir", "/folder/inner/deep")
    try desk.served("mv", "/to", "/folder/inner/deep/to")
    #expect(try shell("ls mnt/folder/inner; ls second/folder/inner/deep") == "file\nto\n")
  }

  /// It would wait for what waits for it.
  @Test func `a backup into a mount of its own vault is refused`() throws {
    try desk.done("mkdir", "/folder")
    try desk.done("mount", "mnt")
    try desk.served("mount", "--folder", "/folder", "second")
    try shell("mkdir mnt/empty && ln -s mnt/folder link")
    let places = ["mnt/new", "mnt/empty", "mnt/empty/new", "mnt", "second", "second/new", "link/new"]
    for place in places + [desk.path("mnt/new")] {
      try desk.unserved(64, "a backup must be outside the vault", "backup", place)
    }
    #expect(try shell("ls -R mnt") == "mnt:\nempty\nfolder\n\nmnt/empty:\n\nmnt/folder:\n")
    // By a way that does not lead through the mount's root.
    if MountedDisk.isPossible {
      try shell("mkdir -p bound mnt/folder && mount --bind mnt/folder bound")
      defer { _ = try? desk.run("/bin/sh", ["-c", "umount bound"]) }
      try desk.unserved(64, "a backup must be outside the vault", "backup", "bound/copy")
    }
    try desk.served("backup", "copy")
  }

  @Test func `two mounts show the same vault, a folder of it, or nothing that can be changed`() throws {
    try desk.done("mkdir", "/folder")
    try desk.done("mount", "mnt")
    // A program that copies a file onto itself does not notice.
    #expect(try desk.served("mount", "second").errors.contains("mounted on \(desk.path("mnt")) too"))
    try desk.served("unmount", "second")
    // Nor where it can only be changed by the other way.
    let told = try desk.served("mount", "--folder", "/folder", "--read-only", "second").errors
    #expect(told.contains("mounted on \(desk.path("mnt")) too"), "\(told)")
    try shell("echo one > mnt/folder/file")
    let status = try desk.served("agent", "status").output
    #expect(status.contains("\nfolder     \(desk.path("vault"))\n"), "\(status)")
    #expect(status.contains("\nmounted    \(desk.path("mnt"))\n"), "\(status)")
    #expect(status.contains("\nmounted    \(desk.path("second")), folder /folder, read only\n"), "\(status)")
    // A change by one mount is told to another a moment later.
    while try desk.run("/bin/sh", ["-c", "cat second/file"]).output != "one\n" { sched_yield() }
    try shell("echo longer > mnt/folder/file && mkdir mnt/folder/inner")
    while try desk.run("/bin/sh", ["-c", "cat second/file"]).output != "longer\n" { sched_yield() }
    while try !shell("ls second").contains("inner") { sched_yield() }
    for command in ["echo x > second/file", "rm second/file", "mkdir second/new", "chmod 700 second/inner"] {
      try fails(command, "Read-only file system")
    }
    #expect(try shell("cd second/inner && cd .. && ls") == "file\ninner\n")
    try desk.served("unmount", "second")
    #expect(try shell("cat mnt/folder/file") == "longer\n")
  }

  @Test func `mounts through which nothing can be changed that both show are not warned of`() throws {
    for folder in ["/folder", "/folders"] { try desk.done("mkdir", folder) }
    try desk.done("mount", "--folder", "/folder", "mnt")
    #expect(try desk.served("mount", "--folder", "/folders", "second").errors == "")
    try desk.served("unmount", "second")
    // One that has another name by now is the same.
    try desk.served("mv", "/folder", "/folders/moved")
    for folder in ["/folders/moved", "/folders"] {
      #expect(
        try desk.served("mount", "--folder", folder, "second").errors.contains("mounted on \(desk.path("mnt")) too"))
      if folder != "/folders" { try desk.served("unmount", "second") }
    }
    for place in ["mnt", "second"] { try desk.served("unmount", place) }
    try desk.served("mount", "--read-only", "mnt")
    #expect(try desk.served("mount", "--read-only", "second").errors == "")
  }

  @Test(arguments: ["os.O_WRONLY | os.O_APPEND", "os.O_WRONLY", "os.O_RDWR"])
  func `what is written behind the end in one mount survives what is stored to a mapping in another`(
    access: String
  ) throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    let program = """
      import mmap, os
      for size, more in (1, 1), (100, 5000), (4095, 1), (4096, 10), (5000, 20000), (70000, 3):
          content = bytearray(b"o" * size)
          with open("mnt/file", "wb") as file: file.write(content)
          mapped = os.open("mnt/file", os.O_RDWR)
          mapping = mmap.mmap(mapped, size)
          other = os.open("second/file", \(access))
          for value in range(3):
              os.lseek(other, 0, os.SEEK_END)
              os.write(other, bytes([65 + value]) * more)
              content += bytes([65 + value]) * more
              for place in size // 2, size - 1:
                  mapping[place] = content[place] = 48 + value
                  mapping.flush()
                  for name in "mnt/file", "second/file":
                      with open(name, "rb") as file: found = file.read()
                      if found != content: print(name, size, more, value, len(found), len(content), found.count(0))
          # Back to an end that was told once.
          os.ftruncate(mapped, size)
          del content[size:]
          os.lseek(other, 0, os.SEEK_END)
          os.write(other, b"D" * 3 * more)
          content += b"D" * 3 * more
          mapping[size - 1] = content[size - 1] = 60
          mapping.flush()
          mapping[0] = content[0] = 61
          mapping.flush()
          for name in "mnt/file", "second/file":
              with open(name, "rb") as file: found = file.read()
              if found != content: print("cut", name, size, more, len(found), len(content), found.count(0))
          mapping.close(); os.close(mapped); os.close(other); os.unlink("second/file")
      print("tried")
      """
    #expect(try shell("python3 -c '\(program)'") == "tried\n")
  }

  /// It has no such end any more by then, although it had been told so once.
  @Test func `a mapping reaches to an end that came back by way of none`() throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    let program = """
      import mmap, os
      mapped = os.open("mnt/file", os.O_RDWR | os.O_CREAT)
      other = os.open("second/file", os.O_RDWR)
      os.pwrite(other, b"o" * 6000, 0)
      mapping = mmap.mmap(mapped, 6000)
      os.ftruncate(other, 0)
      print(os.fstat(mapped).st_size)
      os.pwrite(other, b"n" * 6000, 0)
      print(mapping[5999:])
      mapping[5999] = 33
      mapping.flush()
      print(os.pread(other, 3, 5997), os.fstat(mapped).st_size)
      """
    #expect(try shell("python3 -c '\(program)'") == "0\nb'n'\nb'nn!' 6000\n")
  }

  @Test func `a mount does not use the folder in which it was asked for`() throws {
    try desk.done("mount", "mnt")
    let outcome = try desk.shell("cd mnt && coffer mount \(desk.path("second")) && touch ../second/file")
    #expect(outcome.code == 0, "\(outcome.errors)")
    try desk.served("unmount", "mnt")
    #expect(try !isMounted)
    #expect(try shell("ls second") == "file\n")
  }

  /// Each of them replaces files of which the other's kernel has not heard.
  @Test func `a name that two mounts replace at the same time keeps no room`() throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    let before = desk.objects()
    let program = """
      import os, sys
      for _ in range(3000):
          with open(sys.argv[1] + "/made" + sys.argv[1], "wb") as file: file.write(bytes(20000))
          os.rename(file.name, sys.argv[1] + "/name")
      """
    try desk.write("replace.py", program)
    try shell("python3 replace.py second & python3 replace.py mnt && wait $!")
    #expect(desk.objects() != before)
    try shell("rm mnt/name")
    // A kernel says a while later that it knows no more of what is gone, which a commit then removes.
    for _ in 0..<200 where desk.objects() != before { try shell("mkdir mnt/again; rmdir mnt/again; sync mnt") }
    #expect(desk.objects().count == before.count)
  }

  @Test(.enabled(if: Fuse.isThereInNameSpace, "a user's name space is not there, or /dev/fuse is not ours in it"))
  func `a vault that is mounted in a name space of mounts shows there alone`() throws {
    try shell("mkfifo said heard")
    let outcome = try desk.shell(
      """
      unshare --user --map-root-user --mount bash -c '
        coffer mount mnt --passcode-file passcode && echo kept > mnt/file && cat mnt/file
        echo > said; read -r line < heard; coffer unmount mnt && coffer agent stop' &
      read -r line < said; ls mnt; grep -c " $PWD/mnt " /proc/self/mountinfo; echo > heard; wait $!
      """)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.output.hasPrefix("mounted on \(desk.path("mnt"))"))
    #expect(outcome.output.hasSuffix("kept\n0\nthe agent has ended\n"), "\(outcome.output)")
    #expect(try desk.done("cat", "/file").output == "kept\n")
  }

  @Test func `room that is asked for in one mount cuts nothing that was appended in another`() throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    let outcome = try desk.run(
      "/usr/bin/python3",
      [
        "-c",
        """
        import os, signal
        grown = os.open("mnt/file", os.O_RDWR | os.O_CREAT)
        child = os.fork()
        if child == 0:
            while True: os.posix_fallocate(grown, 0, os.fstat(grown).st_size + 10)
        appended = os.open("second/file", os.O_WRONLY | os.O_APPEND)
        for _ in range(4000): os.write(appended, b"x" * 100)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(open("second/file", "rb").read().count(b"x"))
        """,
      ])
    #expect(outcome.output == "400000\n", "\(outcome.errors)")
  }
}
