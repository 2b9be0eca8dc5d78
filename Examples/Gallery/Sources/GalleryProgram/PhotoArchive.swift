import Synchronization
import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Which photo, in which format: `/photos/17.png`.
struct PhotoAddress: Sendable, Hashable {
    let number: Int
    let format: ImageFormat

    init(_ number: Int, _ format: ImageFormat) {
        self.number = number
        self.format = format
    }

    init?(path: String) {
        let parts = path.split(separator: "/")
        guard parts.count == 2, parts[0] == "photos" else { return nil }
        let name = parts[1].split(separator: ".")
        guard name.count == 2, let number = Int(name[0]), number >= 0 else { return nil }
        switch name[1] {
        case "png": self.init(number, .png)
        case "jpg": self.init(number, .jpeg)
        default: return nil
        }
    }

    var path: String { "/photos/\(number).\(format == .png ? "png" : "jpg")" }
}

/// Files of photos, each made once. From any thread.
final class PhotoArchive: Sendable {
    /// In pixels; the height is three quarters of it.
    static let usualWidth = 352

    private struct Key: Hashable {
        let address: PhotoAddress
        let width: Int
    }

    private let files = Mutex<[Key: Data]>([:])

    func bytes(of address: PhotoAddress, width: Int) throws -> Data {
        let key = Key(address: address, width: width)
        if let file = files.withLock({ $0[key] }) { return file }
        // Two who want the same at once make it twice: no one waits for a photo that is not his.
        guard let image = Photo(number: address.number).drawn(width: width, height: width * 3 / 4) else {
            throw ImageError(.invalidArgument, "a photo \(width) pixels wide")
        }
        let file = try image.encoded(as: address.format == .png ? .png(level: 3) : .jpeg(quality: 88))
        files.withLock { $0[key] = file }
        return file
    }
}
