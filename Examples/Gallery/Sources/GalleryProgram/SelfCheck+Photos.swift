import GalleryChecks
import GalleryViews
import GtkBridge
import TernImages
import TernTesting
import TernViewModels

extension SelfCheck {
    func checkPhotos() async {
        gallery.window.present()
        let isShown = await MainLoop.wait { gallery.visibleCells.count >= 15 }
        checks.check("the grid shows its first cells", isShown, "\(gallery.visibleCells.count)")
        // To the end and half way back, a few rows with each frame.
        let end = gallery.scroll.maximumOffset
        let steps = 60
        for step in Array(1...steps) + Array((steps / 2..<steps).reversed()) {
            gallery.scroll.offset = end * Double(step) / Double(steps)
            await MainLoop.pause(16)
        }
        let count = gallery.grid.cells.count
        checks.check(
            "600 photos went through recycled cells", gallery.grid.bindCount >= 600 && count < 600,
            "\(gallery.grid.bindCount) binds, \(count) cells")
        await MainLoop.wait { gallery.visibleCells.allSatisfy(\.showsItsPhoto) }
        let cells = gallery.visibleCells
        let wrong = cells.filter { !$0.showsItsPhoto }
        // Row by row: the numbers follow one another.
        let first = cells.first?.number ?? -1
        let isInOrder = cells.enumerated().allSatisfy { $1.number == first + $0 } && first % 5 == 0
        checks.check(
            "after a fast scroll each visible cell shows its own photo",
            cells.count >= 15 && wrong.isEmpty && isInOrder,
            "\(cells.count - wrong.count) of \(cells.count), from number \(first) on, \(isInOrder ? "" : "not ")in order"
        )
        await checkDrawing(of: cells)
    }

    /// The PNGs are served without loss, and their suns are of one colour: not a bit may differ.
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
            "the pixel that GTK draws is the pixel served", count >= 10 && same == count, "\(same) of \(count)")
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
        // What comes after them has come.
        later.loadImage(from: server.url(PhotoAddress(903, .png)))
        await MainLoop.wait { later.showsItsPhoto && reused.showsItsPhoto }
        await MainLoop.pause(200)
        checks.check("a cancelled load never lands", cancelled.shown == nil && later.showsItsPhoto)
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

    /// Nobody but GTK holds the window and its cell. What closes it.
    private func openWindowThatLoads() -> @MainActor () -> Void {
        let (window, cell) = (Window("Closing", width: 200, height: 200), Gallery.cell())
        window.setContent(cell)
        window.present()
        cell.loadImage(from: server.url(PhotoAddress(904, .png), query: "held"))
        return { [weak window] in window?.close() }
    }
}
