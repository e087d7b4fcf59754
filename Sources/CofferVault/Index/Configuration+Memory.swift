internal import GRDB

#if os(iOS)
  extension Configuration {
    /// Where the system asks for memory, GRDB would use a connection from a queue of its own, beside statements that run past that queue.
    mutating func leaveMemoryToOwner() { automaticMemoryManagement = false }
  }
#else
  extension Configuration {
    /// Nobody else uses a connection here.
    mutating func leaveMemoryToOwner() {}
  }
#endif
