#if os(Linux)
@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// SVG files of the tests.
enum SVGFile {
    static let namespaces = "xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'"

    /// Returns a file with attributes of the first element and content.
    static func file(_ attributes: String, _ content: String = "<rect width='100%' height='100%' fill='lime'/>") -> Data
    {
        Data("<svg \(namespaces) \(attributes)>\(content)</svg>".utf8)
    }

    /// A picture that takes years to draw: 10 billion rectangles.
    static let endless = file("width='10' height='10'", "<defs>\(levels)</defs><use xlink:href='#a10'/>")

    private static let levels: String = {
        let first = "<g id='a0'><rect width='3' height='3'/></g>"
        return (1...10).reduce(into: first) { text, level in
            let uses = String(repeating: "<use xlink:href='#a\(level - 1)'/>", count: 10)
            text += "<g id='a\(level)'>\(uses)</g>"
        }
    }()

    /// A picture of half transparent layers, each of which takes the memory of the whole picture while it is drawn.
    static let layers = file(
        "width='10' height='10'",
        String(repeating: "<g opacity='.5'>", count: 200) + "<rect width='9' height='9'/>"
            + String(repeating: "</g>", count: 200))
}

extension SVGImageDecoder {
    /// Returns the error of decoding; nil if there is a picture.
    func failure(_ data: Data, _ options: ImageDecodingOptions = ImageDecodingOptions()) -> ImageError? {
        do throws(ImageError) {
            _ = try image(from: data, options: options)
            return nil
        } catch {
            return error
        }
    }
}
#endif
