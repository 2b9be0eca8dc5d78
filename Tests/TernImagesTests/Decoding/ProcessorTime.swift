#if os(Linux)
import Glibc

/// The processor's time that this process takes for a body: what it waits for other programs is not in it.
func processorTime(_ body: () throws -> Void) rethrows -> Duration {
    let begin = clock()
    try body()
    // POSIX has a million of them in a second everywhere.
    return .microseconds(clock() - begin)
}
#endif
