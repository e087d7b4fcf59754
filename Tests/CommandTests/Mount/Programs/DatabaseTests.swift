import Glibc
import Testing

/// SQLite keeps a database on a ground, with both kinds of journal and from several processes.
@Suite(.enabled(if: Peer.isPossible, Peer.missing)) struct DatabaseTests {
  private static let script = """
    import os, sqlite3, sys
    journal, role = sys.argv[1:]
    database = sqlite3.connect("database", timeout=60, isolation_level=None)
    mode = database.execute(f"PRAGMA journal_mode={journal}").fetchone()[0]
    assert mode == journal, mode
    if role == "make":
      database.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, writer TEXT, value BLOB)")
      database.execute("CREATE TABLE total(id INTEGER PRIMARY KEY, count INTEGER)")
      database.execute("INSERT INTO total VALUES(1, 0)")
    elif role == "check":
      assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
      items = database.execute("SELECT count(*) FROM item").fetchone()[0]
      print(items, database.execute("SELECT count FROM total").fetchone()[0])
    elif role == "roll":
      database.execute("BEGIN IMMEDIATE")
      database.execute("DELETE FROM item")
      database.execute("UPDATE total SET count = -1")
      database.execute("ROLLBACK")
      database.execute("VACUUM")
    elif role == "die":
      database.execute("PRAGMA cache_size=1")
      database.execute("BEGIN IMMEDIATE")
      for n in range(200): database.execute("INSERT INTO item(writer, value) VALUES('lost', ?)", (bytes(3000),))
      print("dying", flush=True)
      os.kill(os.getpid(), 9)
    else:
      for n in range(25):
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO item(writer, value) VALUES(?, ?)", (role, os.urandom(2000)))
        database.execute("UPDATE total SET count = count + 1")
        database.execute("COMMIT")
    database.close()
    """

  @Test(arguments: Ground.Kind.here, ["wal", "delete", "truncate", "persist"])
  func `a database keeps every transaction of several writers, and none that was not finished`(
    kind: Ground.Kind, journal: String
  ) throws {
    let plot = try Plot.on(kind)
    let program = try Program(in: plot)
    try Kernel.makeFile(program.plain("script"), Self.script)
    func command(_ role: String) -> String { "exec /usr/bin/python3 \"$PLAIN/script\" \(journal) \(role)" }
    try program.run(command("make"))
    let writers = try ["one", "two", "three"].map { try program.start(command($0)) }
    for writer in writers {
      let outcome = writer.wait()
      #expect(outcome.code == 0, "\(outcome.errors)")
    }
    #expect(try program.run(command("check")) == "75 75")
    try program.run(command("roll"))
    #expect(try program.run(command("check")) == "75 75")
    // Killed within a transaction of which a part is stored already.
    #expect(try program.start(command("die")).wait().code == 128 + SIGKILL)
    #expect(try program.run(command("check")) == "75 75")
    let left = try Kernel.names(plot.path)
    #expect(left.contains("database") && !left.contains("database-wal"))
  }
}
