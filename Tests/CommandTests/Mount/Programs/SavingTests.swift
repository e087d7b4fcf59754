import CofferTestSupport
import Glibc
import Testing

/// Programs that save in each of the ways that programs do.
@Suite struct SavingTests {
  @Test(.enabled(if: Program.areHere("sed"), "sed is not here"), arguments: Ground.Kind.here)
  func `an editor that saves by rename`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let program = try Program(in: plot)
    try program.run("seq 1 5000 > file && chmod 640 file")
    // Held, so that no other file gets its number.
    let first = try Handle(plot("file"), O_RDONLY)
    for round in 0..<10 { try program.run("sed -i 's/^\(round)00$/changed/' file") }
    #expect(try program.run("grep -c changed file") == "9")
    let stat = try Kernel.stat(plot("file"))
    #expect(try stat.number != first.stat().number && stat.permissions == 0o640)
    #expect(try first.text.hasPrefix("1\n2\n") && !first.text.contains("changed"))
    #expect(try Kernel.names(plot.path) == ["file"])
  }

  @Test(.enabled(if: Program.areHere("vim"), "vim is not here"), arguments: Ground.Kind.here)
  func `vim, with a copy aside and with a rename`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let program = try Program(in: plot)
    try program.run("seq 1 3000 > file && ln file linked")
    for (number, copying) in ["yes", "no", "auto"].enumerated() {
      let options = "writebackup backup backupskip= backupcopy=\(copying) fsync"
      try program.run("vim -N -u NONE -es -c 'set \(options)' -c '\(number + 1)s/.*/changed/' -c wq file")
    }
    #expect(try program.run("grep -c changed file") == "3")
    #expect(try program.run("wc -l < file") == "3000")
    #expect(try program.run("grep -c changed file~") == "2")
    // The first way wrote to the file, the second put another in its place.
    #expect(try program.run("grep -c changed linked") == "1")
    #expect(try Kernel.names(plot.path) == ["file", "file~", "linked"])
  }

  @Test(arguments: Ground.Kind.here) func `a file that is written aside, synced and renamed`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"), "0")
    let reader = try Handle(plot("file"), O_RDONLY)
    for round in 1...20 {
      let aside = try Handle(plot("file.new"), O_CREAT | O_EXCL | O_WRONLY, mode: 0o600)
      try aside.writeAll(noise(round * 1000))
      try aside.chmod(0o644)
      try aside.sync()
      try Kernel.rename(plot("file.new"), plot("file"))
      try Handle(plot.path, O_RDONLY | O_DIRECTORY).sync()
      #expect(try Kernel.content(plot("file")) == noise(round * 1000))
      #expect(try aside.stat() == Kernel.stat(plot("file")))
    }
    // Who had the first one open has it still.
    #expect(try reader.text == "0" && reader.stat().links == 0)
    #expect(try Kernel.names(plot.path) == ["file"])
  }

  @Test(
    .enabled(if: Program.areHere("cc", "make", "ar"), "there is no compiler: cc, make and ar"),
    arguments: Ground.Kind.here)
  func `a compiler, a linker, make, and what they made`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let program = try Program(in: plot)
    try Kernel.makeFile(
      plot("main.c"),
      """
      #include <stdio.h>
      int part(int);
      int main(void) { printf("%d\\n", part(20)); return 0; }

      """)
    try Kernel.makeFile(plot("part.c"), "int part(int n) { return 2 * n + 2; }\n")
    try Kernel.makeFile(
      plot("Makefile"),
      """
      program: main.o libpart.a
      \tcc -o $@ main.o -L. -lpart
      libpart.a: part.o
      \tar rcs $@ $<
      %.o: %.c
      \tcc -g -c -o $@ $<

      """)
    try program.run("make -s -j2")
    #expect(try program.run("./program") == "42")
    #expect(try program.run("make -q && echo unchanged") == "unchanged")
    // What is running cannot be written to, and what is written to cannot run.
    try program.run("printf '#include <unistd.h>\\nint main(void) { return pause(); }' > wait.c && cc -o wait wait.c")
    let running = try RunningProgram(
      plot("wait"), [], in: plot.path, environment: [:], errors: program.plain("wait-errors"))
    #expect(outcome { try Kernel.open(plot("wait"), O_RDWR) } == CallError(ETXTBSY))
    running.signal(SIGTERM)
    #expect(running.wait().code == 128 + SIGTERM)
    // A change is newer than what was made from it.
    try Handle(plot("part.c"), O_WRONLY | O_TRUNC).write("int part(int n) { return 3 * n; }\n")
    try program.run("make -s && cc -shared -fPIC -o libshared.so part.c")
    #expect(try program.run("./program") == "60")
    try program.run("cc -o dynamic main.c -L. -lshared && test \"$(LD_LIBRARY_PATH=. ./dynamic)\" = 60")
  }

  @Test(.enabled(if: Peer.isPossible, Peer.missing), arguments: Ground.Kind.here)
  func `Python's modules: shelves, memory maps, temporary files, locks and archives`(kind: Ground.Kind) throws {
    let program = try Program(in: Plot.on(kind))
    try Kernel.makeFile(
      program.plain("script"),
      """
      import dbm.dumb, mailbox, mmap, os, shutil, tempfile, zipfile
      with dbm.dumb.open("shelf", "c") as shelf:
        for n in range(200): shelf[str(n)] = str(n) * 50
      with dbm.dumb.open("shelf") as shelf: assert len(shelf) == 200 and shelf["7"] == b"7" * 50
      box = mailbox.Maildir("mail")
      for n in range(20): box.add(f"Subject: {n}\\n\\nText\\n")
      assert len(box) == 20
      box = mailbox.mbox("mbox"); box.lock(); box.add("Subject: x\\n\\nText\\n"); box.flush(); box.unlock(); box.close()
      with tempfile.TemporaryFile(dir=".") as file:
        file.write(os.urandom(100000)); file.seek(0); assert len(file.read()) == 100000
      with zipfile.ZipFile("archive.zip", "w") as archive:
        for n in range(20): archive.writestr(f"{n}/file", os.urandom(5000))
      with zipfile.ZipFile("archive.zip", "a") as archive: archive.write("mbox")
      with zipfile.ZipFile("archive.zip") as archive: assert archive.testzip() is None and len(archive.namelist()) == 21
      shutil.copytree("mail", "copy"); shutil.make_archive("all", "gztar", "copy"); shutil.rmtree("copy")
      assert not [name for name in os.listdir(".") if name.startswith("tmp")]
      """)
    try program.run("/usr/bin/python3 \"$PLAIN/script\"")
  }
}
