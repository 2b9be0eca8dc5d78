/// Decides which of several addresses gets the next call. Pure. The times are those of a clock that does not go back.
///
/// The addresses take turns. One to which no connection could be made is left out for a time that grows with each
/// failure, unless all are.
struct AddressRotation {
    private struct Place {
        var failures = 0
        var isOutUntil = Duration.zero
    }

    private var places: [Place]
    private var last: Int
    private let delays: ClosedRange<Duration>

    /// - Parameter delays: The first and the longest time for which an address is left out.
    init(count: Int, delays: ClosedRange<Duration>) {
        places = Array(repeating: Place(), count: count)
        last = count - 1
        self.delays = delays
    }

    /// Returns the address of the next call.
    mutating func next(at now: Duration) -> Int {
        let turn = (1...places.count).map { (last + $0) % places.count }
        let place = turn.first { places[$0].isOutUntil <= now } ?? turn[0]
        last = place
        return place
    }

    /// Notes that no connection could be made. Returns whether another address is in.
    mutating func failed(at place: Int, now: Duration) -> Bool {
        var delay = delays.lowerBound
        for _ in 0..<min(places[place].failures, 40) where delay < delays.upperBound { delay = delay * 1.6 }
        places[place].failures += 1
        places[place].isOutUntil = now + min(delay, delays.upperBound)
        return places.contains { $0.isOutUntil <= now }
    }

    /// Notes a response.
    mutating func succeeded(at place: Int) { places[place] = Place() }
}
