import Testing

@testable import TernEngine

@Suite struct HTTP3RaceTests {
    private enum Event {
        case headStart(isNeeded: Bool)
        case needed
        case http3Fails(isNeeded: Bool)
        case http3Connects, tcpFails, tcpConnects
    }

    private func actions(_ events: [Event], isOnOtherHost: Bool = false) -> [[HTTP3Race.Action]] {
        var race = HTTP3Race(isOnOtherHost: isOnOtherHost)
        return events.map { event in
            switch event {
            case .headStart(let isNeeded): race.headStartEnded(isNeeded: isNeeded)
            case .needed: race.becameNeeded()
            case .http3Fails(let isNeeded): race.http3Failed(isNeeded: isNeeded)
            case .http3Connects: race.http3Connected()
            case .tcpFails: race.tcpFailed()
            case .tcpConnects: race.tcpConnected()
            }
        }
    }

    @Test func theFirstThatConnectsWins() {
        #expect(actions([.http3Connects]) == [[.forgetFailures, .won(.http3)]])
        #expect(
            actions([.headStart(isNeeded: true), .http3Connects])
                == [[.startTCP], [.closeTCP, .forgetFailures, .won(.http3)]])
        #expect(
            actions([.headStart(isNeeded: true), .tcpConnects])
                == [[.startTCP], [.closeHTTP3, .rememberFailure, .won(.tcp)]])
    }

    @Test func aFailureOfHTTP3LetsTCPStartAtOnce() {
        #expect(
            actions([.http3Fails(isNeeded: true), .headStart(isNeeded: true), .tcpConnects])
                == [[.startTCP], [], [.rememberFailure, .won(.tcp)]])
        #expect(
            actions([.headStart(isNeeded: true), .http3Fails(isNeeded: true), .tcpConnects])
                == [[.startTCP], [], [.rememberFailure, .won(.tcp)]])
    }

    @Test func anotherHostDoesNotShortenTheHeadStart() {
        #expect(
            actions([.http3Fails(isNeeded: true), .headStart(isNeeded: true), .tcpConnects], isOnOtherHost: true)
                == [[], [.startTCP], [.rememberFailure, .won(.tcp)]])
        #expect(
            actions([.http3Fails(isNeeded: false), .headStart(isNeeded: false)], isOnOtherHost: true)
                == [[], [.rememberFailure, .fail(.http3)]])
    }

    @Test func theErrorIsThatOfTCPAndNothingIsRemembered() {
        #expect(
            actions([.http3Fails(isNeeded: true), .tcpFails]) == [[.startTCP], [.fail(.tcp)]])
        #expect(
            actions([.headStart(isNeeded: true), .tcpFails, .http3Fails(isNeeded: true)])
                == [[.startTCP], [.wait], [.fail(.tcp)]])
        // Not for longer than another head start.
        #expect(
            actions([.headStart(isNeeded: true), .tcpFails, .headStart(isNeeded: true)])
                == [[.startTCP], [.wait], [.closeHTTP3, .fail(.tcp)]])
        #expect(
            actions([.headStart(isNeeded: true), .tcpFails, .headStart(isNeeded: false), .http3Connects])
                == [[.startTCP], [.wait], [.wait], [.forgetFailures, .won(.http3)]])
        #expect(
            actions([.headStart(isNeeded: true), .tcpFails, .http3Connects])
                == [[.startTCP], [.wait], [.forgetFailures, .won(.http3)]])
    }

    @Test func withoutANeedTCPDoesNotStart() {
        #expect(actions([.headStart(isNeeded: false), .http3Connects]) == [[], [.forgetFailures, .won(.http3)]])
        #expect(
            actions([.headStart(isNeeded: false), .http3Fails(isNeeded: false)])
                == [[], [.rememberFailure, .fail(.http3)]])
        #expect(actions([.http3Fails(isNeeded: false)]) == [[.rememberFailure, .fail(.http3)]])
        // An exchange comes before the end of the head start, and after it.
        #expect(actions([.needed, .headStart(isNeeded: true)]) == [[], [.startTCP]])
        #expect(actions([.headStart(isNeeded: false), .needed, .needed]) == [[], [.startTCP], []])
    }
}
