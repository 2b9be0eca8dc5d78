import Foundation
import GRPCCore
import Tern
import Testing

@testable import TernGRPCTransport

@Suite("Messages: compression, metadata and statuses") struct MessageTests {
    @Test(arguments: [MessageEncoding.identity, .gzip, .deflate], [0, 1, 100, 20_000])
    func framesComeBack(encoding: MessageEncoding, count: Int) throws {
        let message = Data(repeating: 7, count: count)
        let pieces = try encoding.frame(message)
        var reader = MessageReader(limit: count)
        reader.append(pieces.reduce(Data(), +))
        if encoding == .identity || count > 100 || count == 0 {
            let read = try #require(try reader.next())
            #expect(read.isCompressed == (encoding != .identity && count > 0))
            #expect(try encoding.content(of: read, upTo: count) == message)
        } else {
            // Small messages grow.
            reader = MessageReader(limit: 1_000)
            reader.append(pieces.reduce(Data(), +))
            #expect(try encoding.content(of: #require(try reader.next()), upTo: count) == message)
        }
    }

    private func code(_ body: () throws(RPCError) -> Data) -> RPCError.Code? {
        do throws(RPCError) {
            _ = try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func inflationIsLimited() throws {
        let bomb = try MessageEncoding.gzip.frame(Data(count: 4 << 20)).reduce(Data(), +)
        var reader = MessageReader(limit: 1 << 20)
        reader.append(bomb)
        let message = try #require(try reader.next())
        #expect(
            code { () throws(RPCError) in try MessageEncoding.gzip.content(of: message, upTo: 1 << 20) }
                == .resourceExhausted)
        #expect(
            code { () throws(RPCError) in try MessageEncoding.deflate.content(of: message, upTo: 1 << 23) }
                == .internalError)
        #expect(
            code { () throws(RPCError) in try MessageEncoding.identity.content(of: message, upTo: 1 << 23) }
                == .internalError)
    }

    @Test func metadataBecomesFields() throws {
        let metadata: Metadata = [
            "a": "1", "B-Upper": "2", "c-bin": .binary([0, 255, 16]), "c-bin": .binary([]), "grpc-timeout": "5S",
            "te": "gzip", "content-type": "text/html", "host": "other",
        ]
        let fields = try MetadataFields.fields(of: metadata).map { "\($0.name): \($0.value)" }
        #expect(fields == ["a: 1", "b-upper: 2", "c-bin: AP8Q", "c-bin: ", "grpc-timeout: 5S"])
    }

    @Test(arguments: [
        Metadata([(key: "a b", value: "1")]), Metadata([(key: ":path", value: "/")]), Metadata([(key: "", value: "1")]),
        Metadata([(key: "a", value: "line\r\nb: 2")]), Metadata([(key: "a", value: "\u{E9}")]),
    ])
    func metadataThatNoFieldCanBeIsRefused(metadata: Metadata) {
        #expect(throws: RPCError.self) { try MetadataFields.fields(of: metadata) }
    }

    @Test func fieldsBecomeMetadata() {
        let fields = Headers([
            Headers.Field(name: "x", value: "1"), Headers.Field(name: "x", value: "2"),
            Headers.Field(name: "b-bin", value: "AP8Q"), Headers.Field(name: "b-bin", value: "AA==, AA,_"),
            Headers.Field(name: "grpc-status", value: "0"), Headers.Field(name: "grpc-message", value: "m"),
            Headers.Field(name: "content-type", value: "application/grpc"),
            Headers.Field(name: "grpc-retry-pushback-ms", value: "5"),
        ])
        let metadata = MetadataFields.metadata(of: fields)
        #expect(metadata.count == 7)
        #expect(Array(metadata[stringValues: "x"]) == ["1", "2"])
        #expect(
            Array(metadata["b-bin"]) == [.binary([0, 255, 16]), .binary([0]), .binary([0]), .string("_")])
        #expect(Array(metadata[stringValues: "grpc-retry-pushback-ms"]) == ["5"])
    }

    @Test(arguments: [
        ("0", "", Status.Code.ok, ""), ("2", "a%20b%E2%98%83", .unknown, "a b\u{2603}"),
        ("16", "%", .unauthenticated, "%"),
        ("5", "100%zz%4", .notFound, "100%zz%4"), ("3", "%FF", .invalidArgument, "\u{FFFD}"),
        ("99", "", .unknown, "the server sent the status \"99\""), ("-1", "x", .unknown, "x"), ("", "x", .unknown, "x"),
        ("+1", "x", .unknown, "x"), ("99999999999999999999", "x", .unknown, "x"),
    ])
    func statusesAreRead(code: String, message: String, expected: Status.Code, text: String) throws {
        let fields = Headers([
            Headers.Field(name: "grpc-status", value: code), Headers.Field(name: "grpc-message", value: message),
        ])
        let status = try #require(Status(grpcFields: fields))
        #expect(status.code == expected && status.message == text)
        #expect(Status(grpcFields: ["grpc-message": message]) == nil)
    }

    @Test(
        arguments: [
            ("application/grpc", true), ("application/grpc+proto", true), ("Application/GRPC; charset=utf-8", true),
            ("application/grpc-web", false), ("application/grpcx", false), ("text/html", false), (nil, false),
        ] as [(String?, Bool)])
    func contentTypesAreChecked(type: String?, isGRPC: Bool) {
        #expect(ResponseStart.isGRPC(type) == isGRPC)
    }

    /// The table of "gRPC over HTTP/2", by the numbers of RFC 9113 §7.
    @Test(
        arguments: [
            (0, .internalError), (1, .internalError), (2, .internalError), (3, .internalError), (5, .unknown),
            (6, .internalError), (7, .unavailable), (8, .cancelled), (9, .internalError), (10, .internalError),
            (11, .resourceExhausted), (12, .permissionDenied), (99, .unknown),
        ] as [(UInt32, RPCError.Code)])
    func codesOfHTTP2AreMapped(code: UInt32, expected: RPCError.Code) {
        #expect(RPCError.code(ofHTTP2: code) == expected)
    }
}
