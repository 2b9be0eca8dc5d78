import GalleryChecks
import GalleryViews
import GtkBridge
import Tern
import TernImages
import TernTesting
import TernViewModels

/// Checks the gallery on the real widgets, by the pixels that GTK draws.
@MainActor
struct SelfCheck {
    let checks: Checks
    let gallery: Gallery
    let server: PhotoServer

    func run() async {
        await checkPhotos()
        await checkList()
        await checkClosing()
        await checkCancelling()
        await checkDownload()
        await checkPull()
        await checkButton()
        await checkLoop()
        await checkIdle()
    }
}

/// The pixels of a texture.
@MainActor
struct Pixels {
    private let bytes: [UInt8]
    private let width: Int
    private let height: Int

    init(_ texture: Texture) {
        bytes = texture.pixels()
        (width, height) = (texture.width, texture.height)
    }

    /// Returns the colour at a position; nil outside.
    func color(x: Int, y: Int) -> Photo.Color? {
        guard x >= 0, y >= 0, x < width, y < height else { return nil }
        let index = (y * width + x) * 4
        return Photo.Color(bytes[index], bytes[index + 1], bytes[index + 2])
    }

    /// Returns the colour of the sun of a photo that fills a frame, or by default the whole image.
    func sun(in frame: Rectangle? = nil) -> Photo.Color? {
        let frame = frame ?? Rectangle(x: 0, y: 0, width: width, height: height)
        return color(
            x: frame.x + Int(Double(frame.width) * Photo.sunPlace.x),
            y: frame.y + Int(Double(frame.height) * Photo.sunPlace.y))
    }
}

extension PhotoCell {
    /// Whether the cell shows the complete photo that was set last.
    var showsItsPhoto: Bool {
        guard let number, let texture, hasLoaded else { return false }
        return Pixels(texture).sun() == Photo(number: number).sun
    }
}

extension SelfCheck {
    func checkPhotos() async {
        gallery.window.present()
        let isShown = await MainLoop.wait { gallery.visibleCells.count >= 15 }
        checks.check("the grid shows its first cells", isShown, detail: "\(gallery.visibleCells.count)")
        // Scroll to the end and half way back, a few rows with each frame.
        let end = gallery.scroll.maximumOffset
        let steps = 60
        for step in Array(1...steps) + Array((steps / 2..<steps).reversed()) {
            gallery.scroll.offset = end * Double(step) / Double(steps)
            await MainLoop.pause(16)
        }
        let count = gallery.grid.cells.count
        checks.check(
            "600 photos went through recycled cells", gallery.grid.bindCount >= 600 && count < 600,
            detail: "\(gallery.grid.bindCount) binds, \(count) cells")
        await MainLoop.wait { gallery.visibleCells.allSatisfy(\.showsItsPhoto) }
        let cells = gallery.visibleCells
        let wrong = cells.filter { !$0.showsItsPhoto }
        // The numbers follow one another, row by row.
        let first = cells.first?.number ?? -1
        let isInOrder = cells.enumerated().allSatisfy { $1.number == first + $0 } && first % 5 == 0
        checks.check(
            "after a fast scroll each visible cell shows its own photo",
            cells.count >= 15 && wrong.isEmpty && isInOrder,
            detail:
                "\(cells.count - wrong.count) of \(cells.count), from number \(first) on, \(isInOrder ? "" : "not ")in order"
        )
        await checkDrawing(of: cells)
    }

    /// Compares exact colours: PNG files are lossless, and each sun has one colour.
    private func checkDrawing(of cells: [PhotoCell]) async {
        guard let drawn = await gallery.window.drawnSoon(), let room = gallery.scroll.frame(in: gallery.window) else {
            return checks.check("the window is drawn", false)
        }
        let pixels = Pixels(drawn)
        var (same, count) = (0, 0)
        for cell in cells {
            guard let frame = cell.frame(in: gallery.window), room.contains(frame), let number = cell.number else {
                continue
            }
            count += 1
            if pixels.sun(in: frame) == Photo(number: number).sun { same += 1 }
        }
        checks.check(
            "the pixel that GTK draws is the pixel served", count >= 10 && same == count, detail: "\(same) of \(count)")
    }

    func checkCancelling() async {
        let (cancelled, reused, later) = (Gallery.cell(), Gallery.cell(), Gallery.cell())
        let window = Window("Cancelling", width: 600, height: 200)
        window.setContent(Stack(.row).add(cancelled).add(reused).add(later))
        window.present()
        let before = server.counts.requestsReceived
        cancelled.loadImage(from: server.url(PhotoAddress(901, .png), query: "held"))
        reused.loadImage(from: server.url(PhotoAddress(902, .png), query: "held"))
        let isAsked = await MainLoop.wait { server.counts.requestsReceived >= before + 2 }
        checks.check("the server holds two photos back", isAsked)
        cancelled.cancelImageLoad()
        reused.loadImage(from: server.url(PhotoAddress(7, .png)))
        server.release()
        // The requests after them have been served.
        later.loadImage(from: server.url(PhotoAddress(903, .png)))
        await MainLoop.wait { later.showsItsPhoto && reused.showsItsPhoto }
        await MainLoop.pause(200)
        checks.check("a cancelled load never lands", cancelled.lastUpdate == nil && later.showsItsPhoto)
        checks.check("a cell that was used again shows the later photo", reused.number == 7 && reused.showsItsPhoto)
        window.close()
    }

    func checkClosing() async {
        let (peers, requests) = (Peer.liveCount, server.counts.requestsReceived)
        let close = openWindowThatLoads()
        await MainLoop.wait { server.counts.requestsReceived > requests }
        close()
        let isGone = await MainLoop.wait(seconds: 5) { Peer.liveCount == peers }
        checks.check("a window that closes while a photo is under way leaves nothing of it", isGone)
    }

    /// Opens a window that only GTK holds, with a loading cell, and returns a closure that closes it.
    private func openWindowThatLoads() -> @MainActor () -> Void {
        let (window, cell) = (Window("Closing", width: 200, height: 200), Gallery.cell())
        window.setContent(cell)
        window.present()
        cell.loadImage(from: server.url(PhotoAddress(904, .png), query: "held"))
        return { [weak window] in window?.close() }
    }
}
