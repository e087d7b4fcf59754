import Glibc
import Testing

/// What a mount leaves in the vault.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct RemountTests {
  let ground: Ground
  let plot: Plot

  init() throws {
    ground = try Ground(.mount)
    plot = try ground.plot()
  }

  private func remount(withNewAgent isNew: Bool) throws {
    try ground.unmount()
    if isNew {
      try ground.desk.served("agent", "stop")
      try ground.unlock()
    }
    try ground.mount()
  }

  @Test(arguments: [false, true]) func `everything is the same on a new mount`(withNewAgent isNew: Bool) throws {
    try makeTree()
    let before = try Tree(plot.path)
    #expect(before.nodes["/large"]?.content[2_000_000..<2_000_006] == Array("mapped".utf8)[...])
    try remount(withNewAgent: isNew)
    let changes = try Tree(plot.path).differences(from: before)
    #expect(changes == [])
    #expect(try Kernel.stat(plot("empty")).accessed == Moment(-5, 6))
    try ground.desk.served("verify", "--deep")
  }

  private func makeTree() throws {
    try plot.furnish()
    try Kernel.makeNode(plot("socket"), S_IFSOCK)
    try Kernel.makeFile(plot("large"), noise(3 << 20))
    let sparse = try Handle(plot("sparse"), O_CREAT | O_RDWR)
    try sparse.write("end", at: 8 << 20)
    try sparse.change(RangeChange.punchHole | RangeChange.keepSize, 0, 1 << 20)
    let map = try Mapping(of: Kernel.open(plot("large"), O_RDWR), count: 3 << 20)
    map[2_000_000..<2_000_006] = Array("mapped".utf8)
    try Kernel.chmod(plot("folder"), 0o1751)
    try Kernel.setAttribute(plot("folder"), "user.mark", noise(300))
    for name in ["empty", "folder", "to-file", "fifo", "socket"] {
      try Kernel.setTimes(plot(name), accessed: Moment(-5, 6), modified: Moment(1 << 33, 999_999_999))
    }
    if Person.canBeAnother { try Kernel.chown(plot("to-file"), user: 1001, group: 2001) }
  }

  @Test func `what random operations made is the same on a new mount`() throws {
    do {
      let performer = RandomPerformer(plot.path)
      for operation in RandomOperation.series(seed: 99, count: 800) { _ = performer.perform(operation) }
    }
    let before = try Tree(plot.path)
    #expect(before.nodes.count > 10)
    try remount(withNewAgent: true)
    let changes = try Tree(plot.path).differences(from: before)
    #expect(changes == [])
    try ground.desk.served("verify", "--deep")
  }

  @Test func `what was synced outlasts an agent that is killed`() throws {
    try plot.furnish()
    do {
      let small = try Handle(plot("file"), O_RDWR)
      let large = try Handle(plot("large"), O_CREAT | O_RDWR)
      let mapped = try Handle(plot("empty"), O_RDWR)
      try small.write("CONTENT", at: 0)
      try large.writeAll(noise(1 << 20))
      try mapped.truncate(to: 100_000)
      let map = try Mapping(of: mapped, count: 100_000)
      map[50_000..<50_006] = Array("mapped".utf8)
      try Kernel.rename(plot("folder"), plot("bare/moved"))
      for file in [small, large, mapped] { try file.sync() }
      try Handle(plot.path, O_RDONLY | O_DIRECTORY).sync()
      // What follows is not synced: it may be lost, and nothing else with it.
      try large.write(noise(1 << 20, seed: 2), at: 0)
      try killAgent()
    }
    try ground.unmount()
    try ground.unlock()
    try ground.mount()
    #expect(try Kernel.text(plot("again")) == "CONTENT\n")
    let contents = [noise(1 << 20), noise(1 << 20, seed: 2)]
    let content = try Kernel.content(plot("large"))
    #expect(content.count == 1 << 20)
    for start in stride(from: 0, to: content.count, by: 4096) {
      let page = Array(content[start..<(start + 4096)])
      #expect(contents.contains { Array($0[start..<(start + 4096)]) == page }, "\(start)")
    }
    #expect(try Array(Kernel.content(plot("empty"))[50_000..<50_006]) == Array("mapped".utf8))
    #expect(try Kernel.names(plot("bare")) == ["moved"] && Kernel.text(plot("bare/moved/inside")) == "inside\n")
    #expect(try !Kernel.exists(plot("folder")))
    try ground.desk.served("verify", "--deep")
  }

  /// Nobody syncs the files themselves; names are stored with the folder.
  @Test(arguments: ["rename", "exchange", "mapped"])
  func `what took a file's place is whole when the agent is killed`(_ how: String) throws {
    let (old, new) = (noise(300_000), noise(700_000, seed: 2))
    try Kernel.makeFile(plot("kept"), old)
    try Handle(plot("kept"), O_RDONLY).sync()
    try Handle(plot.path, O_RDONLY | O_DIRECTORY).sync()
    do {
      let file = try Handle(plot("fresh"), O_CREAT | O_RDWR)
      var map: Mapping?
      if how == "mapped" {
        try file.truncate(to: new.count)
        map = try Mapping(of: file, count: new.count)
        map?[0..<new.count] = new
      } else {
        try file.writeAll(new)
      }
      if how == "exchange" {
        try Kernel.rename(plot("kept"), plot("fresh"), flags: RenameFlag.exchange)
      } else {
        try Kernel.rename(plot("fresh"), plot("kept"))
      }
      try Handle(plot.path, O_RDONLY | O_DIRECTORY).sync()
      try killAgent()
      withExtendedLifetime(map) {}
    }
    try ground.unmount()
    try ground.unlock()
    try ground.mount()
    #expect(try firstDifference(Kernel.content(plot("kept")), new) == nil)
    if how == "exchange" { #expect(try firstDifference(Kernel.content(plot("fresh")), old) == nil) }
    try ground.desk.served("verify", "--deep")
  }

  /// Waits until nobody answers the kernel any more.
  private func killAgent() throws {
    kill(try ground.desk.agentProcess(), SIGKILL)
    while outcome({ _ = try Kernel.fileSystem(ground.path) }) != CallError(ENOTCONN) { sched_yield() }
  }

  @Test func `files without a name leave nothing behind`() throws {
    try remount(withNewAgent: false)
    let before = ground.desk.objects()
    do {
      let files = try (0..<10).map { number in
        let file = try Handle(plot("\(number)"), O_CREAT | O_RDWR)
        try file.writeAll(noise(200_000))
        try file.sync()
        try Kernel.unlink(plot("\(number)"))
        return file
      }
      #expect(ground.desk.objects().count >= before.count + files.count)
    }
    try remount(withNewAgent: true)
    #expect(ground.desk.objects() == before)
  }
}
