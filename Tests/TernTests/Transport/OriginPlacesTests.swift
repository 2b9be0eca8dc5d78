#if os(Linux)
import Testing

@testable import Tern

@Suite struct OriginPlacesTests {
    /// Places attempts that do not end. Returns their loops.
    private func place(
        _ count: Int, to origin: String = "a", in places: inout OriginPlaces, mayShare: Bool = false,
        binding: OriginPlaces.Binding = .none, isAvailable: (Int) -> Bool = { _ in true }
    ) -> [Int] {
        (0..<count).map { _ in
            places.place(origin, mayShare: mayShare, binding: binding, isAvailable: isAvailable).loop
        }
    }

    @Test func fewAttemptsStayAtHome() {
        var places = OriginPlaces(loops: 3)
        #expect(place(8, in: &places) == Array(repeating: 0, count: 8))
        // Then the others catch up, and all have as many.
        #expect(place(16, in: &places) == [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2])
        #expect(place(4, in: &places) == [0, 1, 2, 0] && places.counts == [10, 9, 9])
    }

    @Test func attemptsThatEndMakeRoomAtHome() {
        var places = OriginPlaces(loops: 2, attemptsAtHome: 2)
        let all = (0..<6).map { _ in places.place("a", mayShare: false, binding: .none) }
        #expect(all.map(\.loop) == [0, 0, 1, 1, 0, 1])
        for place in all { places.ended(place) }
        #expect(places.counts == [0, 0])
        #expect(place(3, in: &places) == [0, 0, 1])
    }

    @Test func oneConnectionOverHTTP2CarriesItsAttemptsOnOneLoop() {
        var places = OriginPlaces(loops: 2, attemptsAtHome: 2)
        // The version is not known.
        #expect(place(20, in: &places, mayShare: true) == Array(repeating: 0, count: 20))
        places.learn(24, of: "a")
        #expect(place(5, in: &places, mayShare: true) == [0, 0, 0, 0, 1])
        places.learn(1, of: "b")
        places.learn(1, of: "a")
        #expect(place(1, in: &places, mayShare: true) == [1])
    }

    @Test func connectionsOverHTTP2AreFilled() {
        var places = OriginPlaces(loops: 3)
        _ = place(1, in: &places, mayShare: true)
        places.learn(10, of: "a")
        #expect(place(39, in: &places, mayShare: true).count == 39 && places.counts == [20, 10, 10])
    }

    @Test func originsHaveTheirOwnHomesOnceTheFirstLoopIsBusy() {
        var places = OriginPlaces(loops: 2, attemptsAtHome: 4)
        #expect(place(4, to: "a", in: &places) == [0, 0, 0, 0])
        #expect(place(4, to: "b", in: &places) == [1, 1, 1, 1])
        #expect(place(2, to: "b", in: &places, binding: .origin) == [1, 1])
        #expect(place(1, to: "b", in: &places, binding: .session) == [0])
        // A stream over HTTP/2 carries another protocol where the connection is.
        places.learn(100, of: "b")
        #expect(place(1, to: "b", in: &places, binding: .session) == [1])
    }

    @Test func aLoopThatIsNotAvailableIsLeftOut() {
        var places = OriginPlaces(loops: 3, attemptsAtHome: 1)
        #expect(place(5, in: &places) { $0 != 1 } == [0, 2, 0, 2, 0])
        var alone = OriginPlaces(loops: 2, attemptsAtHome: 1)
        #expect(place(3, in: &alone) { _ in false } == [0, 0, 0])
    }

    @Test func originsWithoutAttemptsAreForgotten() {
        var places = OriginPlaces(loops: 2)
        let kept = places.place("kept", mayShare: false, binding: .none)
        for number in 0..<5_000 { places.ended(places.place("\(number)", mayShare: false, binding: .none)) }
        #expect(places.originCount <= OriginPlaces.keptOrigins + 1)
        places.ended(kept)
        #expect(places.counts == [0, 0])
    }
}
#endif
