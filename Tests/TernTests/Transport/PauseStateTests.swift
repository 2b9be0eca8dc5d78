#if os(Linux)
import CTernCurl
import Testing

@testable import Tern

/// Decides the state that libcurl is set to for a pause, for a reader that is behind and for a body without bytes yet.
@Suite struct PauseStateTests {
    private static let all = CURLPAUSE_ALL
    private static let receiving = CURLPAUSE_RECV
    private static let versions: [HTTPVersion] = [.http10, .http11, .http2, .http3]

    @Test func animationIsNotDisturbed() {
        var pauseState = PauseState(sendsNothing: true)
        #expect(pauseState.refusesBytes() == false)
        #expect(pauseState.settle() == nil)
        for version in Self.versions { #expect(pauseState.stopAtOnce(version) == nil) }
    }

    @Test(arguments: [true, false]) func aPauseStopsBothDirectionsOnce(sendsNothing: Bool) {
        var pauseState = PauseState(sendsNothing: sendsNothing)
        pauseState.isPaused = true
        #expect(pauseState.settle() == Self.all)
        #expect(pauseState.settle() == nil)
        #expect(pauseState.refusesBytes() == true)
        pauseState.isPaused = false
        #expect(pauseState.settle() == 0)
        #expect(pauseState.settle() == nil)
        #expect(pauseState.refusesBytes() == false)
    }

    @Test func pauseThatEndsWithinATurnHasNoEffect() {
        var pauseState = PauseState(sendsNothing: true)
        pauseState.isPaused = true
        pauseState.isPaused = false
        #expect(pauseState.settle() == nil)
    }

    @Test func refusedBytesAreRequestedOnceTheReaderHasTakenAll() {
        var pauseState = PauseState(sendsNothing: false)
        pauseState.isHeldUp = true
        #expect(pauseState.refusesBytes() == true)
        // The refusal has already stopped libcurl.
        #expect(pauseState.settle() == nil)
        pauseState.isHeldUp = false
        #expect(pauseState.settle() == 0)
        #expect(pauseState.refusesBytes() == false)
    }

    @Test func onlyARequestWithoutABodyOverHTTP1IsStoppedAtOnce() {
        for version in Self.versions {
            for sendsNothing in [true, false] {
                var pauseState = PauseState(sendsNothing: sendsNothing)
                pauseState.isHeldUp = true
                let isOfOne = version == .http10 || version == .http11
                #expect(pauseState.stopAtOnce(version) == (sendsNothing && isOfOne ? Self.all : nil))
            }
        }
    }

    @Test func bytesReadBeforeAnImmediateStopAreKept() throws {
        var pauseState = PauseState(sendsNothing: true)
        pauseState.isHeldUp = true
        pauseState.stoppedAtOnce(try #require(pauseState.stopAtOnce(.http11)))
        #expect(pauseState.refusesBytes() == false)
        #expect(pauseState.settle() == nil)
        pauseState.isHeldUp = false
        #expect(pauseState.settle() == 0)
    }

    @Test func pauseWhileTheReaderIsBehindHasNoEffect() throws {
        var pauseState = PauseState(sendsNothing: true)
        pauseState.isHeldUp = true
        pauseState.stoppedAtOnce(try #require(pauseState.stopAtOnce(.http11)))
        pauseState.isPaused = true
        #expect(pauseState.settle() == nil)
        #expect(pauseState.refusesBytes() == true)
        pauseState.isPaused = false
        #expect(pauseState.settle() == nil)
        pauseState.isPaused = true
        pauseState.isHeldUp = false
        #expect(pauseState.settle() == nil)
        pauseState.isPaused = false
        #expect(pauseState.settle() == 0)
    }

    @Test func requestBodyContinuesAfterAPauseWhileTheReaderIsBehind() {
        var pauseState = PauseState(sendsNothing: false)
        pauseState.isHeldUp = true
        #expect(pauseState.refusesBytes() == true)
        pauseState.isPaused = true
        #expect(pauseState.settle() == Self.all)
        pauseState.isPaused = false
        // The request's body continues; the response's body waits for the reader.
        #expect(pauseState.settle() == Self.receiving)
        pauseState.isHeldUp = false
        #expect(pauseState.settle() == 0)
    }

    @Test func bodyWithoutBytesPausesSendingOnly() {
        var pauseState = PauseState(sendsNothing: false)
        pauseState.isStarved = true
        pauseState.refusedToSend()
        #expect(pauseState.settle() == nil)
        #expect(pauseState.refusesBytes() == false)
        pauseState.isPaused = true
        #expect(pauseState.settle() == Self.all)
        pauseState.isPaused = false
        #expect(pauseState.settle() == CURLPAUSE_SEND)
        pauseState.isStarved = false
        #expect(pauseState.settle() == 0)
    }

    @Test func withdrawnAttemptStartsWithoutAPause() {
        var pauseState = PauseState(sendsNothing: true)
        pauseState.isPaused = true
        #expect(pauseState.settle() == Self.all)
        pauseState.withdraw()
        pauseState.isPaused = false
        #expect(pauseState.settle() == nil)
    }
}
#endif
