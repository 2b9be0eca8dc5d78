#if os(Linux)
import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Decodes the first picture of a video, by GStreamer in a process of its own.
///
/// An example of a decoder that a program registers: Tern knows no videos. A damaged video can end or hold up the other
/// process, and not this one. The package `gstreamer1.0-tools` has the program, and GStreamer's plugins have the codecs.
struct VideoPosterDecoder: ImageDecoder {
    private static let program = "gst-launch-1.0"
    /// The time after which the process is ended.
    private static let timeLimit = Duration.seconds(20)

    /// Whether the name of a file is that of a video.
    static func isVideo(_ name: String) -> Bool {
        let kinds = [".mp4", ".m4v", ".mov", ".webm", ".mkv"]
        return kinds.contains { name.lowercased().hasSuffix($0) }
    }

    func decodes(_ format: ImageFormat) -> Bool { format.rawValue.hasPrefix("video/") }

    func format(of bytes: Data) -> ImageFormat? {
        // AVIF and HEIC begin like the videos of the MP4 family.
        if let picture = ImageFormat(sniffing: bytes) { return picture }
        if bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) { return ImageFormat(rawValue: "video/webm") }
        return bytes.dropFirst(4).starts(with: "ftyp".utf8) ? ImageFormat(rawValue: "video/mp4") : nil
    }

    func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        let format = format(of: data)
        guard data.count <= options.limits.bytes else {
            throw ImageError(.limitExceeded, format: format, "\(data.count) bytes exceed `limits.bytes`")
        }
        let name = "tern-poster-\(UInt64.random(in: 0 ... .max))"
        let folder = FileManager.default.temporaryDirectory.appending(path: name)
        // `try?`: the system cleans the folder for temporary files.
        defer { try? FileManager.default.removeItem(at: folder) }
        let (video, poster) = (folder.appending(path: "video"), folder.appending(path: "poster.png"))
        let picture: Data
        do {
            // Some videos have their index at the end: GStreamer must be able to seek, as it cannot in a pipe.
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try data.write(to: video)
            try decode(video, to: poster, format)
            picture = try Data(contentsOf: poster)
        } catch let error as ImageError {
            throw error
        } catch {
            throw ImageError(.corrupt, format: format, "GStreamer found no picture in the video", underlying: error)
        }
        return try CodecImageDecoder().image(from: picture, options: options)
    }

    func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? { nil }

    /// Writes the first picture of a file as PNG, upright.
    private func decode(_ video: URL, to poster: URL, _ format: ImageFormat?) throws(ImageError) {
        let words = [
            Self.program, "--quiet", "filesrc", "location=\(video.path)", "!", "decodebin", "!", "videoconvert", "!",
            "videoflip", "video-direction=auto", "!", "pngenc", "snapshot=true", "!", "filesink",
            "location=\(poster.path)",
        ]
        guard let process = Self.start(words) else {
            throw ImageError(
                .unsupported, format: format, "a video needs \(Self.program), of the package gstreamer1.0-tools")
        }
        let end = ContinuousClock.now + Self.timeLimit
        var status: Int32 = 0
        while unsafe waitpid(process, &status, WNOHANG) == 0 {
            if Task.isCancelled || ContinuousClock.now > end {
                kill(process, SIGKILL)
                _ = unsafe waitpid(process, &status, 0)
                if Task.isCancelled { throw ImageError(.cancelled, "the load was cancelled") }
                throw ImageError(.limitExceeded, format: format, "the video took longer than \(Self.timeLimit)")
            }
            usleep(5_000)
        }
        if status != 0 { throw ImageError(.corrupt, format: format, "GStreamer does not decode the video") }
    }

    /// Starts a program without input and output. Returns its process; nil if there is no such program.
    private static func start(_ words: [String]) -> pid_t? {
        var actions = unsafe posix_spawn_file_actions_t()
        guard unsafe posix_spawn_file_actions_init(&actions) == 0 else { return nil }
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for descriptor in Int32(0)...2 {
            unsafe posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { for index in 0..<words.count { unsafe free(arguments[index]) } }
        var process: pid_t = 0
        let code = unsafe posix_spawnp(&process, words[0], &actions, nil, &arguments, environ)
        return code == 0 ? process : nil
    }
}
#endif
