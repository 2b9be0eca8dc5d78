import Tern
import TernImages
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Bytes that no decoder takes are named.
@Suite struct ForeignContentTests {
    struct Row: Sendable, CustomStringConvertible {
        let first: [UInt8]
        let type: String
        let name: String
        var description: String { "\(type), \(first.count)" }

        init(_ first: [UInt8], _ type: String, _ name: String) {
            (self.first, self.type, self.name) = (first, type, name)
        }

        init(_ text: String, _ type: String, _ name: String) { self.init(Array(text.utf8), type, name) }
    }

    private static func box(_ major: String, _ brands: [String] = []) -> [UInt8] {
        [0, 0, 0, UInt8(16 + brands.count * 4)] + Array("ftyp\(major)\0\0\0\0\(brands.joined())".utf8)
    }

    static let pictures = [
        Row([0, 0, 0, 12] + Array("jP  \r\n".utf8) + [0x87, 0x0A], "image/jp2", "JPEG 2000"),
        Row([0xFF, 0x4F, 0xFF, 0x51, 0, 0x2F], "image/jp2", "JPEG 2000"),
        Row("8BPS\0\u{1}", "image/vnd.adobe.photoshop", "Photoshop"),
        Row("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "image/svg+xml", "SVG"),
        Row("\u{FEFF}\n<?xml version=\"1.0\"?>\n<!-- > a <svg> -->\n<!DOCTYPE svg>\n<svg>", "image/svg+xml", "SVG"),
        Row("<SVG\n", "image/svg+xml", "SVG"),
    ]

    static let others = [
        Row("<!DOCTYPE html>\n<html>", "text/html", "HTML"), Row("\r\n<html lang=en>", "text/html", "HTML"),
        Row("<?xml version=\"1.0\"?><!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0\"><html>", "text/html", "HTML"),
        Row("<!-- <svg> --><head><title>404", "text/html", "HTML"), Row("<h1>Not found</h1>", "text/html", "HTML"),
        Row("{\"error\": \"not found\"}", "application/json", "JSON"), Row(" []", "application/json", "JSON"),
        Row("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "application/xml", "XML"),
        Row("[\n  {\"id\": 1}]", "application/json", "JSON"), Row("[ERROR] the disk is full", "text/plain", "text"),
        Row("Internal Server Error", "text/plain", "text"), Row("Datei nicht gefunden: größer", "text/plain", "text"),
        Row("%PDF-1.7\n%\u{FFFD}", "application/pdf", "PDF"), Row(box("isom", ["mp42"]), "video/mp4", "video"),
        Row([0x1A, 0x45, 0xDF, 0xA3, 1], "video/webm", "video"), Row([0x1F, 0x8B, 8, 0], "application/gzip", "gzip"),
        Row([0x50, 0x4B, 3, 4], "application/zip", "ZIP"),
    ]

    static let unknown: [[UInt8]] = [
        [1], [0, 0, 3, 0], Array("DOT".utf8), Array(repeating: 0, count: 300), Array("<svgx".utf8) + [0],
        Array("a text with a \0 in it".utf8), [0xC3, 0x28] + Array("no UTF-8, and long".utf8),
        // A box whose brands are still to come.
        Array(box("mif1", ["miaf", "heic"]).prefix(23)),
    ]

    private func failure(_ bytes: [UInt8]) -> ImageError? {
        do throws(ImageError) {
            _ = try CodecImageDecoder().image(from: Data(bytes), options: ImageDecodingOptions())
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: pictures + others) func bytesAreNamedInTheError(row: Row) {
        let error = failure(row.first)
        #expect(error?.kind == .unsupported && error?.format?.rawValue == row.type, "\(String(describing: error))")
        #expect(error?.message.contains(row.name) == true, "\(String(describing: error))")
        #expect(error?.message.contains("\(row.first.count) bytes") == true)
        #expect(ImageFormat(sniffing: Data(row.first))?.rawValue == (row.type.hasPrefix("image/") ? row.type : nil))
        // In pieces, the error comes as soon as the bytes tell, and the same at the end.
        let pieces = IncrementalDecoder()
        let thrown = #expect(throws: ImageError.self) {
            for byte in row.first { try pieces.append(Data([byte])) }
            _ = try pieces.finish()
        }
        #expect(thrown?.kind == .unsupported && thrown?.format?.rawValue == row.type, "\(String(describing: thrown))")
    }

    @Test(arguments: unknown) func otherBytesAreOfNoKnownFormat(bytes: [UInt8]) {
        #expect(failure(bytes)?.kind == .unknownFormat, "\(String(describing: failure(bytes)))")
    }

    /// The first 256 bytes decide: a long comment costs no more.
    @Test func aLongBeginningIsReadOnce() {
        let comment = "<!--" + String(repeating: "-<!", count: 100_000)
        #expect(failure(Array(comment.utf8))?.format?.rawValue == "text/plain")
    }

    @Test func thePipelineTellsTheTypeOfTheResponse() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.respond(headers: [("Content-Type", "text/html; charset=utf-8")], text: "<html><body>Log in")
        }
        defer { server.stop() }
        let pipeline = ImagePipeline()
        for attempt in [ImageError.Kind.unsupported, .failedBefore] {
            let error = await #expect(throws: ImageError.self) {
                _ = try await pipeline.image(from: server.url("/a.png"))
            }
            #expect(error?.kind == attempt)
            let text = String(describing: error)
            #expect(text.contains("HTML") && text.contains("text/html; charset=utf-8"), "\(text)")
        }
    }
}
