#if COFFER_THREAD_SANITIZER
  import CofferSystem

  typealias Mutex<Value> = ThreadMutex<Value>
#endif
