#if os(Linux)
  internal import CofferSystem

  typealias Mutex<Value> = ThreadMutex<Value>
#endif
