#if os(Linux)
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes HEIC files (ISO/IEC 23008-12) around pictures that x265 has coded.
struct HEIFFile {
    /// A picture of 64 × 64 pixels: the data of its box hvcC, and its NAL units.
    struct Coded: Sendable {
        let setup: [UInt8]
        let units: [UInt8]
    }

    struct Item {
        var type: String
        var data: [UInt8] = []
        var properties: [[UInt8]] = []
        /// The numbers of the items that it is put together of. The first item has the number 1.
        var parts: [Int] = []
        /// The number of the item whose alpha channel it is.
        var alphaOf: Int?
        /// Whether its data are in the box meta.
        var isInside = false
    }

    var items: [Item]
    var brand = "heic"
    /// Whether the colours of the first item are products with their alpha.
    var isPremultiplied = false
    /// Bytes behind the last box.
    var tail: [UInt8] = []

    var bytes: [UInt8] {
        let start = Self.box("ftyp", Array(brand.utf8) + big(0, 4) + Array("mif1heic".utf8))
        let meta = meta(mediaAt: start.count + meta(mediaAt: 0).count + 8)
        return start + meta + Self.box("mdat", items.filter { !$0.isInside }.flatMap(\.data)) + tail
    }

    /// Returns the items for a file in which others come first.
    func shifted(by count: Int) -> [Item] {
        items.map { item in
            var item = item
            item.parts = item.parts.map { $0 + count }
            item.alphaOf = item.alphaOf.map { $0 + count }
            return item
        }
    }

    static func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
        big(content.count + 8, 4) + Array(type.utf8) + content
    }

    static func full(_ type: String, _ version: Int, _ content: [UInt8]) -> [UInt8] {
        box(type, [UInt8(version), 0, 0, 0] + content)
    }

    private func meta(mediaAt start: Int) -> [UInt8] {
        let numbered = Array(zip(1..., items))
        var (media, inside) = (start, 0)
        var places: [UInt8] = []
        for (number, item) in numbered {
            places += big(number, 2) + big(item.isInside ? 1 : 0, 2) + big(0, 2) + big(1, 2)
            places += big(item.isInside ? inside : media, 4) + big(item.data.count, 4)
            if item.isInside { inside += item.data.count } else { media += item.data.count }
        }
        let entries = numbered.flatMap { number, item in
            Self.full("infe", 2, big(number, 2) + big(0, 2) + Array(item.type.utf8) + [0])
        }
        var next = 0
        let uses = numbered.flatMap { number, item in
            let indices = item.properties.map { _ -> UInt8 in
                next += 1
                return UInt8(next)
            }
            return big(number, 2) + [UInt8(indices.count)] + indices
        }
        var references: [UInt8] = []
        for (number, item) in numbered {
            func refer(_ type: String, _ numbers: [Int]) {
                references += Self.box(type, big(number, 2) + big(numbers.count, 2) + numbers.flatMap { big($0, 2) })
            }
            if !item.parts.isEmpty { refer("dimg", item.parts) }
            if let master = item.alphaOf { refer("auxl", [master]) }
            if isPremultiplied, number == 1 { refer("prem", [2]) }
        }
        let kind = big(0, 4) + Array("pict".utf8) + [UInt8](repeating: 0, count: 13)
        let properties = Self.box("ipco", items.flatMap { $0.properties.joined() })
        return Self.full(
            "meta", 0,
            Self.full("hdlr", 0, kind) + Self.full("pitm", 0, big(1, 2))
                + Self.full("iloc", 1, big(0x4400, 2) + big(items.count, 2) + places)
                + Self.full("iinf", 0, big(items.count, 2) + entries)
                + Self.box("iprp", properties + Self.full("ipma", 0, big(items.count, 4) + uses))
                + (references.isEmpty ? [] : Self.full("iref", 0, references))
                + Self.box("idat", items.filter(\.isInside).flatMap(\.data)))
    }
}

extension HEIFFile {
    static func size(_ width: Int, _ height: Int) -> [UInt8] { full("ispe", 0, big(width, 4) + big(height, 4)) }
    /// Turns counterclockwise, by a number of quarters.
    static func turn(_ quarters: UInt8) -> [UInt8] { box("irot", [quarters]) }
    /// Swaps top and bottom with 0, and left and right with 1.
    static func mirror(_ axis: UInt8) -> [UInt8] { box("imir", [axis]) }
    /// Keeps a part, whose middle is a number of pixels from that of the picture.
    static func aperture(_ width: Int, _ height: Int, right: Int, down: Int) -> [UInt8] {
        box("clap", [width, 1, height, 1, right, 1, down, 1].flatMap { big($0, 4) })
    }
    static let isAlpha = full("auxC", 0, Array("urn:mpeg:hevc:2015:auxid:1".utf8) + [0])

    static func coded(
        _ coded: Coded = color, size: (Int, Int) = (64, 64), alphaOf: Int? = nil, _ properties: [[UInt8]] = []
    ) -> Item {
        let own = [box("hvcC", coded.setup), Self.size(size.0, size.1)] + (alphaOf == nil ? [] : [isAlpha])
        return Item(type: "hvc1", data: coded.units, properties: own + properties, alphaOf: alphaOf)
    }

    /// Returns a grid of one or more parts, which is cut off at its right and bottom.
    static func grid(
        _ columns: Int = 1, _ rows: Int = 1, size: (Int, Int) = (24, 16), parts: [Int], alphaOf: Int? = nil,
        _ properties: [[UInt8]] = []
    ) -> Item {
        let head = [0, 0, UInt8(rows - 1), UInt8(columns - 1)] + big(size.0, 2) + big(size.1, 2)
        let all = [Self.size(size.0, size.1)] + properties + (alphaOf == nil ? [] : [isAlpha])
        return Item(type: "grid", data: head, properties: all, parts: parts, alphaOf: alphaOf, isInside: true)
    }

    /// 24 × 16 pixels of a coded picture.
    static func picture(_ coded: Coded = color, _ properties: [[UInt8]] = []) -> HEIFFile {
        HEIFFile(items: [grid(parts: [2], properties), Self.coded(coded)])
    }

    static var transparent: HEIFFile {
        HEIFFile(items: [grid(parts: [3]), grid(parts: [4], alphaOf: 1), coded(), coded(alpha)])
    }

    /// Red is ten times x, green 15 times y, blue 255 − 5x − 5y, for x below 24 and y below 16; 4:4:4, quality 95.
    static let color = Coded(
        setup: decode(
            """
            AQQIAAAAAAAAAAAAHvAA/P/4+AAADwMgAAEAF0ABDAH//wQIAAADAJ44AAADAAAeugJAIQABACpCAQEECAAAAwCeOAAAAwAAHpAEECCy
            3VXTXNwICBgQAAADABAAAAMAEIAiAAEACEQBwXMYMBiQ
            """),
        units: decode(
            """
            AAABEygBrwayCIgvLYCyZR4iiUq/GN9iii95pCoNIwja0y/5jTe6R0j8Qw3ASs/jXl19dX8e4wGX1FbUAMBRWGNHJXKPa9H4BiHZREDo
            OQ6wG7ysGYOgOqHvncFAp40qGvJ9M2Om8el8y9+f+K0i78expJrPj9H5v8YGhSK4664WOqaBZNljcQo2DtUjGQP392I0Blj/0FjpRz0l
            ec3u1H9uSs19NucWW+PRNj/N3Py9DLpWr+PY+d+HO3QxeHleIg3i40pf0JXY8UyWnu5x5F94h8pxo1rO8EDDNMbDNdcnLC1WcjXm+Qhh
            wJu/KSzlzJXWWRq70v66qfpxGKV/8dqy27/wpan/MZND7TwLc96jFrD1ROeA
            """))

    /// A pattern of 64 × 64 pixels in three slices; 4:2:0.
    static let slices = Coded(
        setup: decode(
            """
            AQQIAAAAAAAAAAAAHvAA/P34+AAADwOgAAEAGEABDAH//wFgAAADAJAAAAMAAAMAHroCQKEAAQAlQgEBAWAAAAMAkAAAAwAAAwAeoCCB
            BZbpbwuAQAAA+gAAAwD6AqIAAQAGRAHAc8EJ
            """),
        units: decode(
            """
            AAAATCgBrEYdaL0SbG3txHcJxRD//9+HroRROmkEIGV3o9fiKLX7b6xKR6khUU36Z2lBEEehy8hwM3RqxiS8pfrPp997mc0Yp3h8+Y/u
            qdAAAADoKAEoxGAdaL0Sbhd57NwnBC6xvQPohx+bBfXEqiI///34erk8HxHFxeKnej1+IotftvrFJHqSFRTfpnaXWiOXtYJnaB3HyRnp
            3XlfyPJO9JvA0K6jVuYbPm9rU3jNOHydkIvjXKhauf2lY53v8p9HY1dEPcx2GJjneiW8Orwymxzrd1InvdVGL0CZbgsLnUHf9FbtFGhN
            DRyzbuZKNUFpOfSZwam0hzal46PyQFeIR9fWVI/s4T7h6PdsUy1yQfTCVD4VduEhk8Hvrqal/mIe2wSESLN44aGfDTFRtDs7VDX+STXQ
            VQreDAAAAf4oATDEIRvQHWjBNHGtQyuCK9K1QPW2Q6c+///tJ/FSucKr7xwxWFks6Jq3QdejCVTT9KjVoZUvwLP14kS/SsH1Lyl50yd3
            CQIeBobYWV/7gG4ggSp+YBodDJEZEE6T7BPisEoEE5dVDfrXBJDH/yC2yO1Jq7U7T17Z3iJDDJSGjPS66kDVN8OOt0N0dmgd/wBfCMp5
            j4g7XYb86jKMpmp0vxBbjYuZ+O1S1/uuvSmRpi8ovMk4pG/G2B///vxUNiKnCWiG+2/faMULe1+2+sWcepIVFN+mdpdanDeWi+7xpzVa
            0+uTEJsnQseIdJQoUvzKJm8EJUmECS1J6kHbxrZ6pi3/EDYDOW1+uF8CknABfqPyPhFHCwNaa6oCLZ0XuBzoZTbl619FaPxIge6Xnw4N
            HekpCSM6LWbEQUsUY8ySewfT81PPJAhge6BUOBXrZzptJxv02VEqs7mJZNIRVZpPfHtL8wAEXlLlNshPAOFh1wb1o+xIlniVYrJVudtI
            Nxv2fK1No5GK4OdalYfFzvE5bU0J31Q/jy7WpdjSScZ+GSncPK0QL221icrRyIYhBLpsl/a045HBjakKij2sId11uvVW3yts6pM0jazC
            BrQMFkX1JxxzGfxu7AebpVTBWO///fh69RLEP4lHAnc9WjRlGGcEQwjRct0GvnSe+dg=
            """))

    /// The same in ten bits.
    static let deep = Coded(
        setup: decode(
            """
            AQQIAAAAAAAAAAAAHvAA/P/6+gAADwMgAAEAF0ABDAH//wQIAAADAJw4AAADAAAeugJAIQABACpCAQEECAAAAwCcOAAAAwAAHpAEECCb
            LdVdNc3AgIGBAAADAAEAAAMAAQgiAAEACEQBwXMYMBiQ
            """),
        units: decode(
            """
            AAAAvigBrwayCIAiCYCye4fEZQ6qyAdIUEhalxGx/wT87vIg3109nmgY6GesH/wckmpGf/cyzHjGOJee2Rx2ocisNCTnCmuoXsI9Pr/i
            v8b+55ELSKov6r9dm6LnGI3mLWkJAkYhElIuV/ThpLEtRzuqujSXfbo7sInpwOpX8H97+kKZK6dp0bXXAMiN+TBYxibZ3uHA+mGKL2ud
            xUyTqu96qW6uCsT978Wa9MCN4tTgun3yo//CwmKL/oD+FrBYZyY=
            """))

    /// 255 − ten times x.
    static let alpha = Coded(
        setup: decode(
            """
            AQQIAAAAAAAAAAAAHvAA/Pz4+AAADwMgAAEAF0ABDAH//wQIAAADAJ/4AAADAAAeugJAIQABACZCAQEECAAAAwCf+AAAAwAAHsCCBBZb
            qrprmwIAAAMAAgAAAwACECIAAQAGRAHBc8GJ
            """),
        units: decode(
            """
            AAAAligBrg1kNhGju8MsIZk7MjalBLrP52wZWu8e33HvrSUqpBwJ42mX8kCEHXndA/VMGecMp5d+XpRX6Kexquq0qDFULcAaR5kD+WY4
            oeAOkk0CAlKehHpp6JVyHLzCgHnB9ToJKUPUkJlaV6op8FJY0K5JeBX8ug9YWsMeviexCgdsLww3RxyBbM/SOO1JJJrW5o6E2kzNFg==
            """))

    private static func decode(_ text: String) -> [UInt8] {
        Data(base64Encoded: text, options: .ignoreUnknownCharacters).map { [UInt8]($0) } ?? []
    }
}
#endif
