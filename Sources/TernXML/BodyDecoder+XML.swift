public import Foundation
public import Tern

extension BodyDecoder where Value == XMLTree {
    /// XML of the types `application/xml`, `text/xml` and every `+xml` (RFC 7303).
    ///
    /// A byte order mark wins over the charset of the Content-Type, and that one over the document's own declaration.
    public static var xml: Self {
        Self(contentTypes: ["application/xml", "text/xml", "*/*+xml"]) { body, head in
            try XMLTree(parsing: XMLBody.document(body, head))
        }
    }
}

extension Response where Value == Data {
    /// The body as XML, whatever its content type.
    ///
    /// - Throws: `NetworkError` of kind `.decoding`, with an `XMLTree.Problem` as its `underlying`, for what is no XML.
    public func xml() throws(NetworkError) -> XMLTree {
        do {
            return try XMLTree(parsing: XMLBody.document(value, head))
        } catch {
            let reason = "the body of \(value.count) bytes is no XML: \(error)"
            throw NetworkError(.decoding, target: head.target, reason: reason, underlying: error)
        }
    }
}

enum XMLBody {
    /// The document as its parser has to see it: in UTF-8 and without its declaration where the response names another
    /// charset, since the parser only knows what the document says of itself (RFC 7303 §3).
    static func document(_ body: Data, _ head: ResponseHead) throws -> Data {
        guard let charset = head.headers["Content-Type"].flatMap({ MediaType($0) })?.charset, !hasMark(body) else {
            return body
        }
        let text = try TextDecoding.string(from: body, charset: charset)
        return Data(withoutDeclaration(text).utf8)
    }

    private static func hasMark(_ body: Data) -> Bool {
        [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]].contains { body.starts(with: $0) }
    }

    /// The lines are kept, for the sake of what an error says.
    private static func withoutDeclaration(_ text: String) -> String {
        guard text.hasPrefix("<?xml"), let end = text.range(of: "?>") else { return text }
        let lines = text[..<end.lowerBound].filter(\.isNewline)
        return lines + text[end.upperBound...]
    }
}
