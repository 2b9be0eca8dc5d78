import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes a web view's content of a response. Pure; runs off every actor.
enum WebContentMaker {
    @concurrent
    static func content(of response: Response<Data>, _ options: WebOptions) async -> Result<WebContent, TransferFailure>
    {
        do {
            return .success(try make(response.value, response.head, options))
        } catch let problem as TextDecoding.Problem {
            return .failure(TransferFailure(.decoding, "the page from \(response.head.target): \(problem)"))
        } catch {
            let reason = "the transform of the page from \(response.head.target) failed"
            return .failure(TransferFailure(.decoding, reason, underlying: error))
        }
    }

    static func make(_ body: Data, _ head: ResponseHead, _ options: WebOptions) throws -> WebContent {
        let type = head.headers["Content-Type"].flatMap { MediaType($0) }
        let charset = WebCharset(of: body, options.textEncoding ?? type?.charset)
        var (data, textEncoding) = (body, charset.name)
        switch options.transform.kind {
        case .none:
            break
        case .data(let transform):
            data = try transform(body, head)
        case .html(let undecodable, let transform):
            let bytes = Array(body.dropFirst(charset.markLength))
            let text =
                switch undecodable {
                case .fails: try TextDecoding.string(from: bytes, charset: charset.name)
                case .isReplaced: try TextDecoding.replacing(bytes, charset: charset.name)
                }
            (data, textEncoding) = encoded(try transform(text, head), charset.name)
        }
        return WebContent(
            data: data, mimeType: options.mimeType ?? type?.essence ?? "text/html", textEncoding: textEncoding,
            baseURL: baseURL(of: head), response: head)
    }

    /// With the fragment: it is the place to which the view scrolls.
    private static func baseURL(of head: ResponseHead) -> URL? {
        guard let fragment = head.fragment else { return head.url }
        return URL(string: "\(head.urlString)#\(fragment)")
    }

    private static func encoded(_ text: String, _ charset: String) -> (Data, String) {
        // A page in UTF-16 without a mark would be read wrongly by some, and UTF-8 holds all that it does.
        if !charset.hasPrefix("utf-"), let bytes = TextDecoding.bytes(of: text, charset: charset) {
            return (Data(bytes), charset)
        }
        return (Data(text.utf8), "utf-8")
    }
}
