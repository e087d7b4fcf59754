#if os(Linux)
  import CofferSystem

  /// That of the rooms under test, which ThreadSanitizer can see.
  typealias Mutex<Value> = ThreadMutex<Value>
#endif
