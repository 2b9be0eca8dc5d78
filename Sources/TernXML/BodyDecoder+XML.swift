public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension BodyDecoder where Value == XMLTree {
    /// Decodes XML of the types `application/xml`, `text/xml` and every `+xml` (RFC 7303).
    ///
    /// A byte order mark overrides the charset of the Content-Type, which overrides the document's own declaration.
    public static var xml: Self {
        Self(contentTypes: ["application/xml", "text/xml", "*/*+xml"]) { body, head in
            try XMLTree(parsing: XMLBody.document(body, head))
        }
    }
}

extension Response where Value == Data {
    /// Returns the body as XML, with any content type.
    ///
    /// - Throws: `NetworkError` of kind `.decoding`, with an `XMLTree.Problem` as its `underlying`, if the body is not
    ///   XML.
    public func xml() throws(NetworkError) -> XMLTree {
        do {
            return try XMLTree(parsing: XMLBody.document(value, head))
        } catch {
            let reason = "the response body (\(value.count) bytes) could not be parsed as XML: \(error)"
            throw NetworkError(.decoding, target: head.target, reason: reason, underlying: error)
        }
    }
}

enum XMLBody {
    /// Returns the document for the parser: in UTF-8 and without its declaration if the response has a charset, because
    /// the parser only knows the document's own declaration (RFC 7303 §3).
    static func document(_ body: Data, _ head: ResponseHead) throws -> Data {
        guard let charset = head.mediaType?.charset, !hasByteOrderMark(body)
        else {
            return body
        }
        let text = try TextDecoding.string(from: body, charset: charset)
        return try XMLEncoding.withoutDeclaration(Data(text.utf8))
    }

    private static func hasByteOrderMark(_ body: Data) -> Bool {
        [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]].contains { body.starts(with: $0) }
    }
}
