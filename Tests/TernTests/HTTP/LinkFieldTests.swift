import Testing

@testable import Tern

struct LinkFieldTests {
    @Test(arguments: [
        (["<https://a/?page=2>; rel=\"next\""], "https://a/?page=2"),
        (["</first>; rel=first, </b,c;d>; rel=\"prev NEXT\"; title=\"x\""], "/b,c;d"),
        (["</a>; rel=last", "<b>;rel=next"], "b"),
        (["<a>; title=\"rel=next, <x>; \\\" rel=next\"; rel=\"next\""], "a"),
        (["<a> ; x ; rel = next"], "a"),
        (["<>; rel=next"], ""),
    ])
    func theNextPageIsFound(values: [String], target: String) {
        #expect(LinkField.target(of: "next", in: values) == target)
    }

    @Test(arguments: [
        [], [""], ["a; rel=next"], ["<a; rel=next"], ["<a>; rel=nextpage"], ["<a>; rel=last; rel=next"],
        ["<a>; rel=next; anchor=\"/other\""], ["<a>; title=\"rel=next"], ["<a> @; rel=next"], [";;;,,,"],
    ])
    func otherLinksAreNot(values: [String]) {
        #expect(LinkField.target(of: "next", in: values) == nil)
    }

    @Test func aLongFieldIsReadOnce() {
        let field = String(repeating: "<a>; rel=prev, ", count: 20_000) + "<b>; rel=next"
        #expect(LinkField.target(of: "next", in: [field]) == "b")
    }
}

struct RequestPathTests {
    @Test func segmentsAreEscapedWhole() throws {
        #expect(try Request.path(["a b", "x/y?z#%", "ü"]) == "a%20b/x%2Fy%3Fz%23%25/%C3%BC")
        #expect(try Request.path(["a", ""]) == "a/")
        #expect(try Request.path([]).isEmpty)
    }

    @Test(arguments: [[".."], ["a", "."], ["", "host"], ["", "", "host"], ["a", "", "b"], [""]])
    func segmentsThatLeadElsewhereAreRefused(segments: [String]) {
        #expect { _ = try Request.path(segments) } throws: { ($0 as? NetworkError)?.kind == .invalidRequest }
    }
}

struct InheritedTimeoutsTests {
    @Test func oneLimitLeavesTheOthersToTheSession() throws {
        let session = Timeouts(connect: .seconds(3), idle: nil, total: .seconds(90), expectContinue: .seconds(9))
        var request = try Request(.get, "https://a.example")
        #expect(request.timeouts(in: session) == session)
        request.timeouts.total = .seconds(5)
        #expect(
            request.timeouts(in: session)
                == Timeouts(connect: .seconds(3), idle: nil, total: .seconds(5), expectContinue: .seconds(9)))
        request.timeouts.idle = nil
        request.timeouts.connect = .seconds(1)
        request.timeouts.expectContinue = .zero
        #expect(
            request.timeouts(in: Timeouts())
                == Timeouts(connect: .seconds(1), idle: nil, total: .seconds(5), expectContinue: .zero))
        request.timeouts = Timeouts(total: .seconds(7))
        #expect(request.timeouts(in: session) == Timeouts(total: .seconds(7)))
        request.timeouts = .inherited
        #expect(request.timeouts(in: session) == session)
    }
}
