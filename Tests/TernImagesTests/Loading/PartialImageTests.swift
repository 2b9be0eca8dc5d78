import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct PartialImageTests {
    private let bytes = Data(repeating: 7, count: 10)

    private func head(_ status: Int = 200, _ headers: Headers) -> ResponseHead {
        ResponseHead(status: status, headers: headers)
    }

    @Test func onlyResumablePartsAreKept() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let second = "Sun, 06 Nov 1994 08:49:38 GMT"
        #expect(PartialImage(bytes, of: head(200, ["ETag": "\"1\""]), length: 20)?.validator == "\"1\"")
        #expect(
            PartialImage(bytes, of: head(200, ["Last-Modified": date, "Date": second]), length: 20)?.validator == date)
        let useless: [Headers] = [
            [:],
            // A weak tag does not identify the bytes, and the date must not replace it (RFC 9110 §13.1.5).
            ["ETag": "W/\"1\""], ["ETag": "W/\"1\"", "Last-Modified": date, "Date": second],
            // The image may have changed again within the same second, and without a date this is unknown.
            ["Last-Modified": date, "Date": date], ["Last-Modified": date], ["Last-Modified": "once", "Date": second],
            ["ETag": "\"1\"", "Content-Encoding": "gzip"], ["ETag": "\"1\"", "Accept-Ranges": "none"],
        ]
        for headers in useless { #expect(PartialImage(bytes, of: head(200, headers), length: 20) == nil, "\(headers)") }
        #expect(PartialImage(Data(), of: head(200, ["ETag": "\"1\""]), length: 20) == nil)
    }

    @Test func theRestIsRequestedConditionally() {
        let part = PartialImage(data: bytes, validator: "\"1\"", length: 20)
        #expect(part.fields["Range"] == "bytes=10-")
        #expect(part.fields["If-Range"] == "\"1\"")
        #expect(part.fields["Accept-Encoding"] == "identity")
    }

    @Test(arguments: [
        ("bytes 10-19/20", PartialImage.Decision.append(until: 20, total: 20)),
        ("bytes 10-19/*", .append(until: 20, total: 20)),
        ("bytes 9-19/20", .mismatch),
        ("bytes 11-19/20", .mismatch), ("bytes 10-20/21", .mismatch), ("bytes 0-9/20", .mismatch),
        // A part shorter than the rest is not the rest, which is asked for next.
        ("bytes 10-14/20", .append(until: 15, total: 20)),
        ("items 10-19/20", .mismatch), ("bytes */20", .mismatch), ("nonsense", .mismatch), ("", .mismatch),
    ])
    func aContentRangeMustBeTheRest(_ range: String, decision: PartialImage.Decision) {
        let part = PartialImage(data: bytes, validator: "\"1\"", length: 20)
        #expect(part.decision(for: head(206, ["Content-Range": range, "ETag": "\"1\""])) == decision)
    }

    @Test func aPartOfOtherBytesIsNotJoined() {
        let part = PartialImage(data: bytes, validator: "\"1\"", length: nil)
        let range: Headers = ["Content-Range": "bytes 10-19/20"]
        #expect(
            part.decision(for: head(206, range.overriding(with: ["ETag": "\"1\""]))) == .append(until: 20, total: 20))
        #expect(part.decision(for: head(206, range.overriding(with: ["ETag": "\"2\""]))) == .mismatch)
        // A server that follows If-Range repeats the tag (RFC 9110 §15.3.7).
        #expect(part.decision(for: head(206, range)) == .mismatch)
        #expect(part.decision(for: head(206, range.overriding(with: ["Content-Encoding": "gzip"]))) == .mismatch)
        #expect(part.decision(for: head(206, [:])) == .mismatch)
        #expect(part.decision(for: head(200, range)) == .mismatch)
        #expect(part.decision(for: head(200, [:])) == .replace)
    }

    /// The table of Documentation/Reference/ResumedDownloads.md, for the parts of images.
    @Test(arguments: 201...599) func everyStatusHasItsRow(status: Int) {
        guard status != 206 else { return }
        let isCondition = [304, 400, 406, 412, 416, 417, 428, 431, 501].contains(status)
        var part = PartialImage(data: bytes, validator: "\"1\"", length: 20)
        for refusals in 0...4 {
            #expect(part.counts == PartCounts(refusals: refusals))
            #expect(part.decision(for: head(status, [:])) == (isCondition || refusals >= 3 ? .mismatch : .refuse))
            part = part.counting(after: NetworkError(.status, reason: "x"), at: .rest)
        }
    }

    @Test func itIsTheSameAfterItWasStored() {
        for part in [
            PartialImage(data: bytes, validator: "\"1\"", length: 20),
            PartialImage(data: bytes, validator: "x", length: nil),
            PartialImage(data: bytes, validator: "x", length: nil, counts: PartCounts(refusals: 3)),
            PartialImage(data: bytes, validator: "x", length: 20, counts: PartCounts(refusals: 3, failures: 2)),
        ] { #expect(PartialImage(part.data, metadata: part.metadata) == part) }
        for text in [
            "", "1\n20\n", "2\n20\nx", "1\n20", "1\n20\nx\ny", "1\n20\nx\n-1", "1\n20\nx\n1\n-1", "1\n20\nx\n1\n1\n1",
        ] {
            #expect(PartialImage(bytes, metadata: Data(text.utf8)) == nil)
        }
    }
}

@Suite struct ImageResponseBodyTests {
    private func head(_ headers: Headers) -> ResponseHead { ResponseHead(status: 200, headers: headers) }

    @Test func aLengthBeyondTheLimitIsRefusedBeforeItsBytesCome() {
        var body = ImageResponseBody(limit: 10)
        #expect(body.begin(head(["Content-Length": "11"]), after: nil) == false)
        var other = ImageResponseBody(limit: 10)
        #expect(other.begin(head(["Content-Length": "10"]), after: nil) == true)
        #expect(other.length == 10)
        // The length of the rest adds to the partial data.
        var rest = ImageResponseBody(limit: 10)
        #expect(rest.begin(head(["Content-Length": "6"]), after: Data(count: 5)) == false)
        var endless = ImageResponseBody(limit: 10)
        #expect(endless.begin(head(["Content-Length": "9223372036854775807"]), after: Data(count: 5)) == false)
        var negative = ImageResponseBody(limit: 10)
        #expect(negative.begin(head(["Content-Length": "-5"]), after: nil) == true && negative.length == nil)
    }

    @Test func bytesBeyondTheLimitAreRefused() {
        var body = ImageResponseBody(limit: 10)
        #expect(body.begin(head([:]), after: nil) == true)
        #expect(body.append(Data(count: 6)) == true)
        #expect(body.append(Data(count: 5)) == false)
        #expect(body.append(Data(count: 4)) == true)
        #expect(body.data.count == 10)
    }

    @Test func theLengthOfAnEncodedBodySaysNothing() {
        var body = ImageResponseBody(limit: 10)
        #expect(body.begin(head(["Content-Length": "100", "Content-Encoding": "gzip"]), after: nil) == true)
        #expect(body.length == nil)
    }

    @Test func thePartialDataComesFirst() {
        var body = ImageResponseBody(limit: 100)
        _ = body.begin(head(["Content-Length": "3"]), after: Data([1, 2]))
        _ = body.append(Data([3, 4, 5]))
        #expect(body.offset == 2)
        #expect(body.length == 5)
        #expect(Array(body.data) == [1, 2, 3, 4, 5])
    }

    @Test func progressIsReportedAtMostThirtyTimesASecond() {
        var body = ImageResponseBody(limit: 1_000)
        _ = body.begin(head(["Content-Length": "500"]), after: nil)
        var told = 0
        for millisecond in 1...499 {
            _ = body.append(Data(count: 1))
            if let progress = body.progress(at: UInt64(1_000 + millisecond) * 1_000_000) {
                told += 1
                #expect(progress.totalBytes == 500)
            }
        }
        #expect((12...16).contains(told))
        _ = body.append(Data(count: 1))
        #expect(body.progress(at: .max / 2) == nil)
    }
}
