import GalleryChecks
import GalleryViews
import GtkBridge
import Tern
import TernImages

/// Checks what the gallery claims, on the widgets themselves and by the pixels that GTK draws.
@MainActor
struct SelfCheck {
    let checks: Checks
    let gallery: Gallery
    let server: PhotoServer

    func run() async {
        await checkPhotos()
        await checkClosing()
        await checkCancelling()
        await checkDownload()
        await checkPull()
        await checkButton()
        await checkLoop()
        await checkIdle()
    }
}

/// Pixels of a texture, to be looked at one by one.
@MainActor
struct Pixels {
    private let bytes: [UInt8]
    private let width: Int
    private let height: Int

    init(_ texture: Texture) {
        bytes = texture.pixels()
        (width, height) = (texture.width, texture.height)
    }

    /// The colour at a place; nil outside.
    func color(x: Int, y: Int) -> Photo.Color? {
        guard x >= 0, y >= 0, x < width, y < height else { return nil }
        let index = (y * width + x) * 4
        return Photo.Color(bytes[index], bytes[index + 1], bytes[index + 2])
    }

    /// The colour of the sun of a photo that fills a frame, or by default all of it.
    func sun(in frame: Rectangle? = nil) -> Photo.Color? {
        let frame = frame ?? Rectangle(x: 0, y: 0, width: width, height: height)
        return color(
            x: frame.x + Int(Double(frame.width) * Photo.sunPlace.x),
            y: frame.y + Int(Double(frame.height) * Photo.sunPlace.y))
    }
}

extension PhotoCell {
    /// Whether it shows the photo that it was given last, and all of it has come.
    var showsItsPhoto: Bool {
        guard let number, let texture, hasLoaded else { return false }
        return Pixels(texture).sun() == Photo(number: number).sun
    }
}
