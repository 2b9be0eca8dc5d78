#if os(Linux)
import CTernCurl
import Testing

@testable import Tern

/// What libcurl is told of a pause, of a reader who is behind and of a body that has no bytes yet.
@Suite struct StandstillTests {
    private static let all = CURLPAUSE_ALL
    private static let receiving = CURLPAUSE_RECV
    private static let versions: [HTTPVersion] = [.http10, .http11, .http2, .http3]

    @Test func whatMovesIsLeftAlone() {
        var standstill = Standstill(sendsNothing: true)
        #expect(standstill.refusesBytes() == false)
        #expect(standstill.settle() == nil)
        for version in Self.versions { #expect(standstill.stopAtOnce(version) == nil) }
    }

    @Test(arguments: [true, false]) func aPauseStopsBothDirectionsOnce(sendsNothing: Bool) {
        var standstill = Standstill(sendsNothing: sendsNothing)
        standstill.isPaused = true
        #expect(standstill.settle() == Self.all)
        #expect(standstill.settle() == nil)
        #expect(standstill.refusesBytes() == true)
        standstill.isPaused = false
        #expect(standstill.settle() == 0)
        #expect(standstill.settle() == nil)
        #expect(standstill.refusesBytes() == false)
    }

    @Test func aPauseThatIsOverBeforeTheTurnEndsIsNotTold() {
        var standstill = Standstill(sendsNothing: true)
        standstill.isPaused = true
        standstill.isPaused = false
        #expect(standstill.settle() == nil)
    }

    @Test func bytesThatWereRefusedAreAskedForWhenTheReaderTookAll() {
        var standstill = Standstill(sendsNothing: false)
        standstill.isHeldUp = true
        #expect(standstill.refusesBytes() == true)
        // The answer has stopped libcurl.
        #expect(standstill.settle() == nil)
        standstill.isHeldUp = false
        #expect(standstill.settle() == 0)
        #expect(standstill.refusesBytes() == false)
    }

    @Test func onlyARequestWithoutABodyOverHTTP1IsStoppedAtOnce() {
        for version in Self.versions {
            for sendsNothing in [true, false] {
                var standstill = Standstill(sendsNothing: sendsNothing)
                standstill.isHeldUp = true
                let isOfOne = version == .http10 || version == .http11
                #expect(standstill.stopAtOnce(version) == (sendsNothing && isOfOne ? Self.all : nil))
            }
        }
    }

    @Test func whatWasReadBeforeItWasStoppedAtOnceIsTaken() throws {
        var standstill = Standstill(sendsNothing: true)
        standstill.isHeldUp = true
        standstill.stoppedAtOnce(try #require(standstill.stopAtOnce(.http11)))
        #expect(standstill.refusesBytes() == false)
        #expect(standstill.settle() == nil)
        standstill.isHeldUp = false
        #expect(standstill.settle() == 0)
    }

    @Test func aPauseWhileTheReaderIsBehindTellsNothingNew() throws {
        var standstill = Standstill(sendsNothing: true)
        standstill.isHeldUp = true
        standstill.stoppedAtOnce(try #require(standstill.stopAtOnce(.http11)))
        standstill.isPaused = true
        #expect(standstill.settle() == nil)
        #expect(standstill.refusesBytes() == true)
        standstill.isPaused = false
        #expect(standstill.settle() == nil)
        standstill.isPaused = true
        standstill.isHeldUp = false
        #expect(standstill.settle() == nil)
        standstill.isPaused = false
        #expect(standstill.settle() == 0)
    }

    @Test func afterAPauseABodyGoesOnWhoseReaderIsBehind() {
        var standstill = Standstill(sendsNothing: false)
        standstill.isHeldUp = true
        #expect(standstill.refusesBytes() == true)
        standstill.isPaused = true
        #expect(standstill.settle() == Self.all)
        standstill.isPaused = false
        // The request's body goes on; the response's waits for the reader.
        #expect(standstill.settle() == Self.receiving)
        standstill.isHeldUp = false
        #expect(standstill.settle() == 0)
    }

    @Test func aBodyWithoutBytesWaitsForThemAlone() {
        var standstill = Standstill(sendsNothing: false)
        standstill.isStarved = true
        standstill.refusedToSend()
        #expect(standstill.settle() == nil)
        #expect(standstill.refusesBytes() == false)
        standstill.isPaused = true
        #expect(standstill.settle() == Self.all)
        standstill.isPaused = false
        #expect(standstill.settle() == CURLPAUSE_SEND)
        standstill.isStarved = false
        #expect(standstill.settle() == 0)
    }

    @Test func anAttemptThatWasTakenOffTheWireBeginsAnew() {
        var standstill = Standstill(sendsNothing: true)
        standstill.isPaused = true
        #expect(standstill.settle() == Self.all)
        standstill.withdraw()
        standstill.isPaused = false
        #expect(standstill.settle() == nil)
    }
}
#endif
