#if os(Linux)
import Glibc

/// Returns the processor time that this process takes for a body. Time spent waiting for other programs does not count.
func processorTime(_ body: () throws -> Void) rethrows -> Duration {
    let begin = clock()
    try body()
    // POSIX defines a million clock ticks per second on every system.
    return .microseconds(clock() - begin)
}
#endif
