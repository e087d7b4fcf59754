#if COFFER_THREAD_SANITIZER
  internal import CofferSystem

  typealias Mutex<Value> = WatchedMutex<Value>
#endif
