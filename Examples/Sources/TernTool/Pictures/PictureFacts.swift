import TernImages

/// What is known of a picture that was loaded, in a line. Pure.
struct PictureFacts {
    let name: String
    let response: ImageResponse
    /// Whether it is a file of this machine, which no cache is asked for.
    let isFile: Bool
    let time: Duration

    var line: String {
        let image = response.image
        var parts = ["\(image.metadata.originalSize)", image.format?.rawValue ?? "unknown format"]
        if let count = response.animation?.count, count > 1 { parts.append("\(count) frames") }
        parts.append(isFile ? "from a file" : "from \(origin)")
        if response.isStale { parts.append("stale") }
        let bytes = response.data.map { "\(ByteText.size(Int64($0.count))) in " } ?? ""
        parts.append(bytes + DurationText.span(time))
        return "\(name): \(parts.joined(separator: ", "))"
    }

    private var origin: String {
        switch response.source {
        case .memory: "memory"
        case .disk, .original: "the disk"
        case .network: "the network"
        case .revalidated: "the disk, asked for again"
        }
    }
}
