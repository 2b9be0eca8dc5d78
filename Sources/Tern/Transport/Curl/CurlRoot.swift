#if os(Linux)
import CTernCurl

/// The part of a URL before the path, as parsed by libcurl. Confined to the loop's thread.
@safe final class CurlRoot {
    let text: String
    let url: OpaquePointer

    /// Parses the text. Returns nil if libcurl cannot read it.
    init?(_ text: String) {
        guard let url = unsafe curl_url() else { return nil }
        self.text = text
        unsafe self.url = url
        guard unsafe curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK else { return nil }
    }

    deinit { unsafe curl_url_cleanup(url) }
}
#endif
