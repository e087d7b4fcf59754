import CofferTestSupport
import Glibc
import Testing

/// tar, rsync and cp carry a tree to a ground, within it and away from it, and nothing is lost on the way.
@Suite struct ArchiveTests {
  /// A tree with one of each: many files, links of both kinds, holes, modes, times, attributes and unusual names.
  private func makeTree(_ path: String) throws {
    try Kernel.mkdir(path)
    for folder in ["folder", "folder/deep", "empty", "wörld with space"] { try Kernel.mkdir("\(path)/\(folder)") }
    for number in 0..<60 { try Kernel.makeFile("\(path)/folder/\(number)", noise(number * 700, seed: UInt64(number))) }
    try Kernel.makeFile("\(path)/large", noise(2 << 20))
    try Kernel.makeFile("\(path)/wörld with space/näme\n", "x")
    try Kernel.link("\(path)/large", "\(path)/folder/deep/linked")
    try Kernel.symlink("../large", at: "\(path)/folder/link")
    try Kernel.symlink("nowhere", at: "\(path)/dangling")
    try Kernel.makeNode("\(path)/fifo", S_IFIFO)
    let sparse = try Handle("\(path)/sparse", O_CREAT | O_RDWR)
    try sparse.write("head")
    try sparse.write("middle", at: 3 << 20)
    try sparse.truncate(to: 5 << 20)
    try Kernel.chmod("\(path)/folder/7", 0o4711)
    try Kernel.chmod("\(path)/empty", 0o1777)
    try Kernel.setAttribute("\(path)/large", "user.mark", "value")
    let names = try Tree(path).nodes.keys.sorted { $0.count > $1.count }
    for (number, name) in names.enumerated() {
      let moment = Moment(1_000_000_000 + number, number * 1_000_003 % 1_000_000_000)
      try Kernel.setTimes(path + name, accessed: moment, modified: moment)
    }
  }

  /// The trees are the same, times of modification with them.
  private func expectSame(
    _ one: String, _ two: String, ignoringAttributes: Bool = false, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let trees = [try Tree(one, acrossGrounds: true), try Tree(two, acrossGrounds: true)]
    for name in Set(trees[0].nodes.keys).union(trees[1].nodes.keys).sorted() {
      var nodes = trees.map { $0.nodes[name] }
      if ignoringAttributes { for number in nodes.indices { nodes[number]?.attributes = [:] } }
      #expect(nodes[0] == nodes[1], "\(name)", sourceLocation: sourceLocation)
      guard nodes[0] != nil, nodes[1] != nil else { continue }
      #expect(
        try Kernel.stat(one + name).modified == Kernel.stat(two + name).modified, "\(name)",
        sourceLocation: sourceLocation)
    }
  }

  @Test(.enabled(if: Program.areHere("tar"), "tar is not here"), arguments: Ground.Kind.here)
  func `tar`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let program = try Program(in: plot)
    try makeTree(program.plain("tree"))
    let options = "-p --xattrs --xattrs-include='user.*' --format=posix"
    try program.run(
      """
      tar \(options) -S -C "$PLAIN" -c tree | tar \(options) -x
      tar \(options) -S -c tree > archive.tar && tar \(options) -d -f archive.tar
      mkdir again && tar \(options) -x -C again -f archive.tar
      mkdir "$PLAIN/back" && tar \(options) -x -C "$PLAIN/back" -f archive.tar
      """)
    for copy in [plot("tree"), plot("again/tree"), program.plain("back/tree")] {
      try expectSame(program.plain("tree"), copy)
    }
    #expect(try Kernel.stat(plot("again/tree/sparse")).blocks * 512 < 2 << 20)
  }

  @Test(.enabled(if: Program.areHere("rsync"), "rsync is not here"), arguments: Ground.Kind.here)
  func `rsync`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let program = try Program(in: plot)
    try makeTree(program.plain("tree"))
    try program.run("rsync -aHXS \"$PLAIN/tree\" . && rsync -aHXS tree/ again && rsync -aHXS again \"$PLAIN\"")
    for copy in [plot("tree"), plot("again"), program.plain("again")] { try expectSame(program.plain("tree"), copy) }
    // Nothing is to do a second time, and what changed is what is carried over.
    #expect(try program.run("rsync -aHXS --out-format=%n \"$PLAIN/tree/\" tree") == "")
    try Handle(program.plain("tree/large"), O_RDWR).write("changed", at: 1 << 20)
    try Kernel.unlink(program.plain("tree/folder/5"))
    // It looks at whole seconds.
    try Kernel.setTimes(program.plain("tree/folder"), modified: Moment(1_500_000_000, 1))
    #expect(
      try program.run("rsync -aHXS --no-whole-file --delete --out-format=%n --checksum \"$PLAIN/tree/\" tree")
        .contains("large"))
    try expectSame(program.plain("tree"), plot("tree"))
    try program.run("rsync -aHX --inplace --delete --no-whole-file --checksum \"$PLAIN/tree/\" again")
    try expectSame(program.plain("tree"), plot("again"))
  }

  @Test(
    .enabled(if: Program.areHere("cp", "find", "diff"), "cp, find or diff are not here"), arguments: Ground.Kind.here)
  func `cp, find, diff, mv and rm`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let program = try Program(in: plot)
    try makeTree(program.plain("tree"))
    try program.run("cp -a \"$PLAIN/tree\" . && cp -a tree again && cp -a --sparse=always again \"$PLAIN/back\"")
    for copy in [plot("tree"), plot("again"), program.plain("back")] { try expectSame(program.plain("tree"), copy) }
    try program.run("rm again/fifo tree/fifo && diff -r --no-dereference tree again")
    // One of them has two lines.
    #expect(try program.run("find tree -type f | wc -l") == "65")
    #expect(try program.run("find tree -type l -o -type d | wc -l") == "7")
    #expect(try program.run("find tree -links 2 -type f | wc -l") == "2")
    #expect(try program.run("find tree -perm -4000 -newermt 2001-01-01 | wc -l") == "1")
    try program.run("mv again \"$PLAIN/moved\" && mv \"$PLAIN/moved\" . && diff -r --no-dereference tree moved")
    #expect(Int(try program.run("du -k --apparent-size tree/sparse | cut -f 1")) == 5 << 10)
    try program.run("rm -r tree moved && test -z \"$(ls -A)\"")
  }

  @Test(.enabled(if: Peer.isPossible, Peer.missing), arguments: Ground.Kind.here)
  func `a file that somebody still writes is copied as far as it is written`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let program = try Program(in: plot)
    let peer = try Peer(in: plot)
    // No program here shares what the peer has open, for that would bring it to the file system when it is closed.
    #expect(peer.ask("f = os.open('file', os.O_CREAT | os.O_RDWR)") == "None")
    let expected = [UInt8]("data".utf8)
    var commands = ["cp": "cp file copy", "cp without holes": "cp --sparse=never file copy"]
    if Program.areHere("tar") { commands["tar"] = "tar -S -cf archive file && tar -xOf archive file > copy" }
    if Program.areHere("rsync") { commands["rsync"] = "rsync -S file copy" }
    for (name, command) in commands {
      try program.run("rm -f copy")
      // Fresh for each: the one before may have brought it there.
      #expect(peer.ask("os.ftruncate(f, 0)") == "None")
      #expect(peer.ask("os.pwrite(f, b'data' * 75000, 0)") == "300000")
      try program.run(command)
      let copy = try Kernel.content(plot("copy"))
      #expect(
        copy.count == 300_000 && Array(copy.prefix(4)) == expected && Array(copy.suffix(4)) == expected, "\(name)")
    }
  }
}
