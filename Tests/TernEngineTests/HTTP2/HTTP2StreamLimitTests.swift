import Testing

@testable import TernEngine

@Suite struct HTTP2StreamLimitTests {
    @Test func theFirstSettingsAreReported() {
        for maximum in [0, 1, 100, 1 << 31 - 1] {
            var limit = HTTP2StreamLimit()
            #expect(limit.current == 1)
            let isReported = limit.stated(maximum)
            #expect(isReported && limit.current == maximum)
        }
    }

    @Test func aRefusalWithinTheLimitLowersItUntilSettings() {
        var limit = HTTP2StreamLimit()
        _ = limit.stated(100)
        let refusal = limit.refused(besides: 10)
        #expect(refusal == .lowered && limit.current == 10)
        // Ten streams and no more are open, as the limit says.
        let next = limit.refused(besides: 10)
        #expect(next == .none && limit.current == 10)
        let isChanged = limit.stated(50)
        #expect(isChanged && limit.current == 50)
    }

    @Test(arguments: [1, 100]) func aRefusalOfTheOnlyStreamEndsTheUseOfTheConnection(maximum: Int) {
        var limit = HTTP2StreamLimit()
        _ = limit.stated(maximum)
        let refusal = limit.refused(besides: 0)
        #expect(refusal == .ended)
    }

    @Test func aRefusalUnderALimitOf0ChangesNothing() {
        var limit = HTTP2StreamLimit()
        _ = limit.stated(0)
        let refusal = limit.refused(besides: 0)
        #expect(refusal == .none)
    }

    @Test func refusalsBeforeSettingsAndAboveTheLimitChangeNothing() {
        var limit = HTTP2StreamLimit()
        let first = limit.refused(besides: 5)
        #expect(first == .none)
        _ = limit.stated(2)
        let second = limit.refused(besides: 5)
        #expect(second == .none && limit.current == 2)
    }

    @Test func answersRaiseALoweredLimitToThatOfTheServer() {
        var limit = HTTP2StreamLimit()
        _ = limit.stated(4)
        _ = limit.refused(besides: 2)
        let changes = (0..<8).map { _ in limit.answered() }
        // Two answers for the third stream, three for the fourth.
        #expect(changes == [false, true, false, false, true, false, false, false])
        #expect(limit.current == 4)
    }
}
