#if os(Linux)
import Glibc
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests what a process of rsvg-convert draws, and what it cannot do.
@Suite(
    .serialized, .timeLimit(.minutes(2)),
    .enabled(if: SVGImageDecoder.systemPath != nil, "rsvg-convert is missing: scripts/set-up test"))
struct SVGProcessTests {
    private let decoder = SVGImageDecoder(timeLimit: .seconds(60))

    private func target(
        _ width: Int, _ height: Int, _ mode: ImageDecodingOptions.ContentMode = .fit
    ) -> ImageDecodingOptions {
        ImageDecodingOptions(targetSize: PixelSize(width: width, height: height), contentMode: mode)
    }

    /// Returns a decoder whose program is a script of the shell.
    private func script(
        _ text: String, in folder: ScratchFolder, timeLimit: Duration = .seconds(60)
    ) throws -> SVGImageDecoder {
        let bin = folder.url.appending(path: "bin")
        try FileManager.default.createDirectory(at: bin, withIntermediateDirectories: true)
        let program = bin.appending(path: "rsvg-convert")
        try Data("#!/bin/sh\n\(text)\n".utf8).write(to: program)
        try #require(unsafe chmod(program.path, 0o700) == 0)
        return SVGImageDecoder(timeLimit: timeLimit, program: program)
    }

    // MARK: Pictures

    private static let picture = SVGFile.file(
        "width='40' height='30'",
        """
        <filter id='f'><feGaussianBlur stdDeviation='1'/></filter><rect width='20' height='30' fill='#f80'/>
        <circle cx='25' cy='15' r='9' fill='blue' opacity='.5' filter='url(#f)'/><text x='2' y='20'>Aé</text>
        """)

    /// The program itself, without limits and without a size from Tern, draws the same.
    @Test(arguments: [
        picture, SVGFile.file("width='10.2mm' height='6mm' viewBox='0 0 17 10'"),
        SVGFile.file("width='30' height='30' viewBox='0 0 10 20'"),
        SVGFile.file("viewBox='0 0 40 10' preserveAspectRatio='none'"),
    ])
    func pixelsAreThoseOfTheProgram(file: Data) throws {
        for width in [nil, 90] {
            let picture = try decoder.image(from: file, options: width.map { target($0, 1_000) } ?? .init())
            let (size, folder) = (picture.size, try ScratchFolder())
            let (input, output) = (folder.url.appending(path: "a.svg"), folder.url.appending(path: "a.png"))
            try file.write(to: input)
            let command = "exec rsvg-convert -w \(size.width) -h \(size.height) -o '\(output.path)' <'\(input.path)'"
            try #require(unsafe system(command) == 0)
            let other = try CodecImageDecoder().image(from: try Data(contentsOf: output), options: .init())
            #expect(picture.size == other.size && picture.pixels.bytes == other.pixels.bytes)
            #expect(picture.format == .svg && picture.metadata.isComplete && !picture.metadata.isPartial)
        }
    }

    @Test func targetsAreReached() throws {
        let icon = SVGFile.file(
            "width='24' height='12'", "<rect width='24' height='12'/><rect x='8' width='8' height='12' fill='lime'/>")
        var picture = try decoder.image(from: icon, options: .init())
        #expect(picture.size == PixelSize(width: 24, height: 12))
        picture = try decoder.image(from: icon, options: target(240, 240))
        #expect(picture.size == PixelSize(width: 240, height: 120))
        #expect(picture.metadata.originalSize == PixelSize(width: 24, height: 12))
        // Drawn, and not scaled: no pixel is between two colors.
        #expect(picture.pixel(79, 60) == [0, 0, 0, 255] && picture.pixel(80, 60) == [0, 255, 0, 255])
        picture = try decoder.image(from: icon, options: target(60, 60, .fill))
        #expect(picture.size == PixelSize(width: 60, height: 60))
        #expect(picture.pixel(9, 0) == [0, 0, 0, 255] && picture.pixel(10, 0) == [0, 255, 0, 255])
        picture = try decoder.image(from: icon, options: target(60, 60, .atLeast))
        #expect(picture.size == PixelSize(width: 120, height: 60))
        var few = target(1_000, 1_000)
        few.byteLimit = 80 * 40 * 4
        #expect(try decoder.image(from: icon, options: few).size == PixelSize(width: 80, height: 40))
    }

    @Test func aSizeThatIsNotStatedIsThatOfBrowsers() throws {
        let corner = SVGFile.file("", "<rect x='290' y='140' width='10' height='10' fill='lime'/>")
        let picture = try decoder.image(from: corner, options: .init())
        #expect(picture.size == PixelSize(width: 300, height: 150))
        #expect(picture.pixel(289, 139)[3] == 0 && picture.pixel(290, 140) == [0, 255, 0, 255])
        // The whole of a giant picture fits the target.
        let giant = try decoder.image(from: SVGFile.file("width='1e9' height='1e9'"), options: target(20, 20))
        #expect(giant.size == PixelSize(width: 20, height: 20) && giant.pixel(19, 19) == [0, 255, 0, 255])
    }

    @Test func alphaIsPremultiplied() throws {
        let half = SVGFile.file("width='4' height='4'", "<rect width='2' height='4' fill='red' fill-opacity='.5'/>")
        let picture = try decoder.image(from: half, options: .init())
        #expect(picture.pixel(0, 0) == [128, 0, 0, 128] && picture.pixel(3, 3) == [0, 0, 0, 0])
    }

    @Test func otherEncodingsAreDecoded() throws {
        let text = "<svg xmlns='http://www.w3.org/2000/svg' width='24' height='20'><rect width='9' height='9'/></svg>"
        let wide = Data([0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
        let plain = try decoder.image(from: Data(text.utf8), options: .init())
        #expect(plain.pixel(8, 8) == [0, 0, 0, 255])
        #expect(try decoder.image(from: wide, options: .init()).pixels.bytes == plain.pixels.bytes)
        let compressed = try decoder.image(from: Data(SVGSizeTests.compressed), options: .init())
        #expect(compressed.size == PixelSize(width: 24, height: 20))
    }

    // MARK: Faults

    @Test(
        arguments: [
            ("<svg \(SVGFile.namespaces)><g>", .truncated), ("<svg \(SVGFile.namespaces)></sv", .truncated),
            ("<svg \(SVGFile.namespaces)><g></svg>", .corrupt), ("<svg \(SVGFile.namespaces)></svg>more", .corrupt),
            ("<svg \(SVGFile.namespaces)>&#0;</svg>", .corrupt), ("<svg a='1' a='2'/>", .corrupt),
            (
                "<!DOCTYPE svg [<!ENTITY a 'haha'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
                    + (0..<9).map {
                        "<!ENTITY b\($0) '\(String(repeating: $0 == 0 ? "&b;" : "&b\($0 - 1);", count: 10))'>"
                    }
                    .joined() + "]><svg \(SVGFile.namespaces)><text>&b8;</text></svg>", .corrupt
            ),
            ("<svg \(SVGFile.namespaces)>\(String(repeating: "<g>", count: 100_000))</svg>", .corrupt),
        ] as [(String, ImageError.Kind)])
    func faultyFilesAreErrors(text: String, kind: ImageError.Kind) {
        var options = ImageDecodingOptions(allowsPartial: true)
        options.limits.memory = 200 << 20
        let error = decoder.failure(Data(text.utf8), options)
        #expect(error?.kind == kind && error?.format == .svg, "\(String(describing: error))")
        #expect(error?.message.contains("XML") == true, "\(String(describing: error))")
    }

    @Test func bombsEndAtALimit() throws {
        let short = SVGImageDecoder(timeLimit: .milliseconds(100))
        var error = short.failure(SVGFile.endless)
        #expect(
            error?.kind == .limitExceeded && error?.message.contains("0.1 s") == true, "\(String(describing: error))")
        #expect(SVGImageDecoder(timeLimit: .zero).failure(SVGFile.endless)?.kind == .limitExceeded)
        var options = target(1_000, 1_000)
        options.limits.memory = 100 << 20
        error = decoder.failure(SVGFile.layers, options)
        #expect(
            error?.kind == .limitExceeded && error?.message.contains("memory") == true, "\(String(describing: error))")
        #expect(SVGImageDecoder.processCount == 0)
    }

    @Test func cancellationEndsTheProcess() async throws {
        let (executor, decoder) = (ImageExecutor(threadCount: 1), decoder)
        let task = Task {
            try await executor.run { () throws(ImageError) in
                try decoder.image(from: SVGFile.endless, options: .init())
            }
        }
        while SVGImageDecoder.processCount == 0 { await Task.yield() }
        task.cancel()
        let error = await #expect(throws: ImageError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
        #expect(SVGImageDecoder.processCount == 0)
    }

    // MARK: The outside

    @Test func nothingOutsideTheFileIsRead() throws {
        let connections = Counter()
        let server = try LoopbackServer { exchange in
            connections.add()
            try exchange.respond(text: "<rect fill='red'/>")
        }
        defer { server.stop() }
        let folder = try ScratchFolder()
        let red = try #require(RasterImage(size: PixelSize(width: 1, height: 1), premultiplied: [255, 0, 0, 255]))
        try red.encoded(as: .png()).write(to: folder.url.appending(path: "a.png"))
        let drawing =
            "<svg \(SVGFile.namespaces) width='9' height='9'><rect id='r' width='9' height='9' fill='red'/></svg>"
        try Data(drawing.utf8).write(to: folder.url.appending(path: "a.svg"))
        try Data("rect{fill:red}".utf8).write(to: folder.url.appending(path: "a.css"))
        let path = folder.url.path
        for base in ["file://\(path)", path, "../../../../../../..\(path)", server.url("/").absoluteString + "x"] {
            // Each part covers one column if it is read.
            let parts = """
                <image width='1' height='9' xlink:href='\(base)/a.png'/><image x='1' width='1' height='9' href='\(base)/a.svg'/>
                <use x='2' xlink:href='\(base)/a.svg#r'/><rect x='3' width='1' height='9' fill='url(\(base)/a.svg#r)'/>
                <filter id='f'><feImage xlink:href='\(base)/a.png'/></filter>
                <rect x='4' width='1' height='9' fill='none' stroke='none' filter='url(#f)'/>
                <style>@import url("\(base)/a.css"); @font-face { font-family: x; src: url(\(base)/a.css) }</style>
                <rect x='5' width='1' height='9' fill='none'/><text x='20' font-family='x'>a</text>
                <xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='\(base)/a.svg'/>
                <script href='\(base)/a.css'/><script>document.documentElement.setAttribute('fill', 'red')</script>
                """
            let text = String(decoding: SVGFile.file("width='9' height='9'", parts), as: UTF8.self)
            let head = "<?xml-stylesheet href='\(base)/a.css'?><!DOCTYPE svg SYSTEM '\(base)/a.svg'>"
            let picture = try decoder.image(from: Data((head + text).utf8), options: .init())
            #expect(picture.pixels.bytes.allSatisfy { $0 == 0 }, "\(base)")
            let entity = "<!DOCTYPE svg [<!ENTITY a SYSTEM '\(base)/a.svg'>]><svg \(SVGFile.namespaces)>&a;</svg>"
            #expect(decoder.failure(Data(entity.utf8))?.kind == .corrupt)
        }
        #expect(connections.value == 0)
        let data = try red.encoded(as: .png()).base64EncodedString()
        let inside = SVGFile.file(
            "width='9' height='9'", "<image width='9' height='9' xlink:href='data:image/png;base64,\(data)'/>")
        #expect(try decoder.image(from: inside, options: .init()).pixel(4, 4) == [255, 0, 0, 255])
    }

    /// The message is the last line of the script's errors.
    @Test func theProcessIsConfined() throws {
        let (folder, outside) = (try ScratchFolder(), try ScratchFolder())
        // Descriptors that a program of thoughtless libraries would inherit.
        let left = (0..<40).map { _ in dup(2) }
        defer { for descriptor in left { close(descriptor) } }
        var error = try script(
            """
            found=
            for n in 4 5 6 7 8 9 20 30 40; do [ -e /proc/self/fd/$n ] && found="$found descriptor $n"; done
            [ -z "$USER$LOGNAME$LD_PRELOAD$LD_LIBRARY_PATH" ] || found="$found environment"
            [ "$HOME $PATH $PWD" = "/nonexistent /usr/bin:/bin /" ] || found="$found home"
            echo "found:$found" >&2
            exit 1
            """, in: folder
        ).failure(SVGFile.file(""))
        #expect(error?.message == "found:")
        let written = folder.url.appending(path: "written")
        _ = try script("echo x >'\(written.path)'", in: folder).failure(SVGFile.file(""))
        #expect((try? Data(contentsOf: written))?.isEmpty != false)
        if SVGImageDecoder.confinesFiles {
            let secret = outside.url.appending(path: "secret")
            try Data("secret\n".utf8).write(to: secret)
            error = try script("read line <'\(secret.path)'; echo $line >&2", in: folder).failure(SVGFile.file(""))
            // The reason behind the path can be cut.
            #expect(error?.message.contains("cannot open") == true, "\(String(describing: error))")
        }
        error = try script("(:); echo another process >&2; exit 1", in: folder).failure(SVGFile.file(""))
        #expect(error?.message.contains("Cannot fork") == true, "\(String(describing: error))")
    }

    @Test(
        arguments: [
            ("echo one >&2; printf 'two\\033[31m\\377\\n\\n' >&2; exit 1", .corrupt, "two?[31m?"),
            ("while read -r line; do :; done", .corrupt, "no picture"), ("exit 3", .corrupt, "failed"),
            ("kill -SEGV $$", .corrupt, "signal 11"), ("kill -KILL $$", .outOfMemory, "killed"),
            ("kill -XCPU $$", .limitExceeded, "60 s"),
            ("echo 'memory allocation of 9 bytes failed' >&2", .limitExceeded, "9"),
            (
                "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", .corrupt,
                "more than"
            ),
            ("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); echo $i >&2; done; exit 1", .corrupt, "30000"),
        ] as [(String, ImageError.Kind, String)])
    func aFaultyProgramIsAnError(text: String, kind: ImageError.Kind, words: String) throws {
        let folder = try ScratchFolder()
        let error = try script(text, in: folder).failure(SVGFile.file(""))
        #expect(error?.kind == kind && error?.message.contains(words) == true, "\(String(describing: error))")
        #expect(SVGImageDecoder.processCount == 0)
    }

    @Test func aProgramThatNeverEndsIsEnded() throws {
        let folder = try ScratchFolder()
        for text in ["while :; do :; done", "exec >&- 2>&- 3>&-; while :; do :; done", "while :; do echo x >&2; done"] {
            let endless = try script(text, in: folder, timeLimit: .milliseconds(50))
            #expect(endless.failure(SVGFile.file(""))?.kind == .limitExceeded)
        }
        #expect(SVGImageDecoder.processCount == 0)
    }

    // MARK: Pipelines

    @Test func manyAreDrawnAtATime() async throws {
        let decoder = decoder
        let executor = ImageExecutor(threadCount: 8)
        let alone = try decoder.image(from: Self.picture, options: target(80, 60))
        try await withThrowingTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    try await executor.run { () throws(ImageError) in
                        try decoder.image(
                            from: Self.picture, options: .init(targetSize: PixelSize(width: 80, height: 60)))
                    }
                }
            }
            for try await picture in group { #expect(picture.pixels.bytes == alone.pixels.bytes) }
        }
    }

    @Test func aPipelineDrawsEachSizeOnce() async throws {
        let icon = SVGFile.file("width='24' height='24'")
        let kit = PipelineKit(picture: icon) { $0.decoders = ImageDecoders([SVGImageDecoder(), CodecImageDecoder()]) }
        func load(_ side: Int?) async throws -> ImageResponse {
            let size = side.map { PixelSize(width: $0, height: $0) }
            return try await kit.pipeline.response(
                for: ImageRequest(try url("https://a.example/1.svg"), targetSize: size))
        }
        #expect(try await load(nil).image.size == PixelSize(width: 24, height: 24))
        let large = try await load(200)
        #expect(large.image.size == PixelSize(width: 200, height: 200) && large.source != .memory)
        #expect(large.image.metadata.originalSize == PixelSize(width: 24, height: 24))
        // Made from the larger one in memory.
        let small = try await load(100)
        #expect(small.image.size == PixelSize(width: 100, height: 100) && small.source == .memory)
        let error = await kit.pipeline.failure(of: ImageRequest(.data("cut") { Data(icon.dropLast(3)) }))
        #expect(error?.kind == .truncated)
    }
}
#endif
