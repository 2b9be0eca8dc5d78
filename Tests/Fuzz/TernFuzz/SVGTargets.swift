import Foundation
import TernImages

/// The first element of SVG, from which the size is read before a process starts.
extension FuzzTarget {
    static let svgSize = FuzzTarget(
        name: "svg-size", seeds: { _ in svgSeeds },
        tokens: [
            "<svg ", "</svg>", "<!--", "-->", "<?", "?>", "<!DOCTYPE ", "[", "]", "width='", "height=\"", "viewBox='",
            "1e9", "-.5", "%", "mm", "/>", "&#49;",
        ],
        run: { input, _ in try measure(input) })

    private static let svgSeeds: [[UInt8]] = {
        let texts = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"24\" height=\"24\" viewBox=\"0 0 24 24\"><path/></svg>",
            "\u{FEFF}<?xml version='1.0'?>\n<!-- > a <svg> -->\n<!DOCTYPE svg PUBLIC 'x' \"y\" "
                + "[<!ENTITY a ']>'><!-- ] --><?p ]> ?>]><s:svg width='1.5e2mm' height = '50%' viewBox=' -1,2 , 3 4e1 '/>",
            "<svg width='.5in' height='1e400px'><svg></svg></svg >", "<svg viewBox='0 0 1e-9 1e-8' height='10em'/>",
        ]
        let wide = texts.map { text -> [UInt8] in
            [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        }
        return texts.map { Array($0.utf8) } + wide
    }()

    /// Reads the size. Blanks at the end change nothing, unless the end is within the first element.
    private static func measure(_ data: Data) throws -> String {
        do throws(ImageError) {
            let size = try SVGImageDecoder.size(of: data)
            guard size.width >= 0.001, size.height >= 0.001, size.width <= 1e9, size.height <= 1e9 else {
                preconditionFailure("a size of \(size)")
            }
            guard let longer = try? SVGImageDecoder.size(of: data + [0x20, 0]), longer == size else {
                preconditionFailure("blanks change the size of \(size)")
            }
            return "size \(size.width == size.height) \(size.width > 300)"
        } catch {
            return "rejected, \(error.kind)"
        }
    }
}
