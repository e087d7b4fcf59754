import CofferTestSupport
import Glibc
import Testing

/// getdents64(2): listings, also while what is listed comes and goes.
@Suite struct ListingTests {
  @Test(arguments: Ground.Kind.here) func `a listing has every name once, whatever the buffer`(kind: Ground.Kind) throws
  {
    let plot = try Plot.on(kind)
    var wanted: Set<String> = [".", ".."]
    for number in 0..<1500 {
      let name = "name-\(number)-" + String(repeating: "x", count: number % 97)
      wanted.insert(name)
      if number % 5 == 0 { try Kernel.mkdir(plot(name)) } else { try Kernel.makeNode(plot(name), S_IFREG) }
    }
    var first: [ListedName] = []
    for size in [32 << 10, 300, 1000, 4096, 1 << 20] {
      let names = try Handle(plot.path, O_RDONLY | O_DIRECTORY).wholeListing(bufferSize: size)
      #expect(names.count == wanted.count && Set(names.map(\.name)) == wanted, "\(size)")
      #expect(Set(names.map(\.cookie)).count == names.count, "\(size)")
      // The same folder is listed in the same order.
      if first.isEmpty { first = names }
      #expect(names == first, "\(size)")
    }
    for entry in first.prefix(200) + first.suffix(50) where entry.name != ".." {
      let stat = try Kernel.stat(plot(entry.name))
      #expect(entry.number == stat.number && entry.kind == stat.kind, "\(entry.name)")
    }
    #expect(try Kernel.stat(plot.path).links == 302)
    #expect(first.first { $0.name == ".." }?.number == (try Kernel.stat(plot("..")).number))
  }

  @Test(arguments: Ground.Kind.here) func `a cookie leads behind its name as long as the folder is open`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for number in 0..<300 { try Kernel.makeNode(plot("kept-\(number)"), S_IFREG) }
    for number in 0..<300 { try Kernel.makeNode(plot("going-\(number)"), S_IFREG) }
    let folder = try Handle(plot.path, O_RDONLY | O_DIRECTORY)
    let listing = try folder.wholeListing()
    var generator = SeededGenerator(seed: 5)
    // A third of the names goes and new ones come; each cookie still leads to the next name that stayed.
    for number in 0..<300 where generator.once(in: 2) { try Kernel.unlink(plot("going-\(number)")) }
    for number in 0..<200 { try Kernel.makeNode(plot("coming-\(number)"), S_IFREG) }
    let now = Set(try Kernel.names(plot.path))
    for position in [0, 1, 2, 17, 100, 301, 450, listing.count - 2] {
      try folder.seek(listing[position].cookie)
      let rest = try folder.wholeListing(bufferSize: 400).map(\.name)
      let stayed = listing[(position + 1)...].map(\.name).filter { now.contains($0) || $0 == "." || $0 == ".." }
      #expect(rest.filter { !$0.hasPrefix("coming-") } == stayed, "behind \(position)")
      #expect(Set(rest).count == rest.count, "behind \(position)")
      #expect(rest.allSatisfy { now.contains($0) || $0 == "." || $0 == ".." }, "behind \(position)")
    }
    // From the beginning there is what there is now.
    try folder.seek(0)
    #expect(Set(try folder.wholeListing().filter { !$0.isDots }.map(\.name)) == now)
    try folder.seek(listing[listing.count - 1].cookie)
    #expect(try folder.wholeListing().allSatisfy { $0.name.hasPrefix("coming-") })
  }

  @Test(arguments: Ground.Kind.here) func `what stays is listed once while others come and go`(kind: Ground.Kind) throws
  {
    let plot = try Plot.on(kind)
    let kept = Set((0..<400).map { "kept-\($0)" })
    for name in kept { try Kernel.makeNode(plot(name), S_IFREG) }
    for round in 0..<3 {
      let listings = try inParallel(4) { number -> [[String]] in
        if number < 2 {
          // They come, get other names, and go.
          for step in 0..<150 {
            let name = plot("\(round)-\(number)-\(step)")
            try Kernel.makeNode(name, S_IFREG)
            try Kernel.rename(name, name + "-renamed")
            if step >= 10 { try Kernel.unlink(plot("\(round)-\(number)-\(step - 10)-renamed")) }
          }
          return []
        }
        let folder = try Handle(plot.path, O_RDONLY | O_DIRECTORY)
        return try (0..<6).map { _ in
          try folder.seek(0)
          return try folder.wholeListing(bufferSize: 500).map(\.name)
        }
      }
      for names in listings.joined() {
        #expect(Set(names).count == names.count)
        #expect(names.filter { kept.contains($0) }.count == kept.count)
      }
    }
  }

  @Test(arguments: Ground.Kind.here) func `a folder that is emptied while it is listed is emptied`(
    kind: Ground.Kind
  ) throws {
    // As rm -r does it: reading a part, and removing what was read.
    let plot = try Plot.on(kind)
    for number in 0..<2000 { try Kernel.makeNode(plot("\(number)"), S_IFREG) }
    let folder = try Handle(plot.path, O_RDONLY | O_DIRECTORY)
    var removed = 0
    while true {
      let part = try folder.listing(bufferSize: 1024)
      if part.isEmpty { break }
      for entry in part where !entry.isDots {
        try Kernel.unlink(plot(entry.name))
        removed += 1
      }
    }
    #expect(removed == 2000)
    #expect(try Kernel.names(plot.path) == [])
  }

  @Test(arguments: Ground.Kind.here) func `it refuses what its manual page says`(kind: Ground.Kind) throws {
    try Refused.all(
      on: kind,
      [
        Refused("a listing of a file", ENOTDIR) { _ = try Kernel.open($0("file"), O_RDONLY).listing() },
        Refused("a buffer too small for a name", EINVAL) {
          _ = try Kernel.open($0("folder"), O_RDONLY).wholeListing(bufferSize: 25)
        },
        Refused("a seek to before the beginning", EINVAL) { try Kernel.open($0("folder"), O_RDONLY).seek(-1) },
      ])
  }
}
