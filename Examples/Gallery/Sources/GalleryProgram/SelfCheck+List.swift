import GalleryChecks
import GalleryViews
import GtkBridge
import TernImages
import TernViewModels

extension SelfCheck {
    /// Checks a list of 10,000 rows: its widgets are those of what is visible.
    func checkList() async {
        var configuration = ImagePipeline.Configuration()
        configuration.disk = .none
        configuration.memoryLimit = 16 << 20
        configuration.executor = gallery.pipeline.configuration.executor
        let list = PhotoList(server, ImagePipeline(configuration: configuration))
        list.window.present()
        await shows(list, "the list shows its first rows")
        await checkFailures(of: list)
        await checkScrolling(list)
        await checkPrefetching(list)
        list.cancel()
        list.window.close()
    }

    private func checkFailures(of list: PhotoList) async {
        guard let row = list.visibleRows.first(where: { $0.number == RowWindow.failing }) else {
            return checks.check("the list has a photo that fails", false)
        }
        let hasFailed = await MainLoop.wait { row.retryButton.isShown }
        checks.check(
            "a photo that fails shows so, and a button", hasFailed && !row.showsItsPhoto && row.cell.texture != nil)
        row.retryButton.click()
        let isShown = await MainLoop.wait { row.showsItsPhoto }
        checks.check("the button tries it again", isShown && !row.retryButton.isShown)
    }

    private func checkScrolling(_ list: PhotoList) async {
        let binds = list.list.bindCount
        var rows = 0
        for step in 1...360 {
            list.scroll(to: Double(step) / 360)
            await MainLoop.pause(16)
            rows = max(rows, list.list.cells.count)
        }
        let count = list.list.bindCount - binds
        checks.check(
            "\(PhotoList.rowCount) rows went through at most 100",
            count >= PhotoList.rowCount * 95 / 100 && rows <= 100, detail: "\(count) binds, \(rows) rows")
        await shows(list, "after the scroll each visible row shows its own photo")
        let last = list.visibleRows.last?.number
        checks.check("the last row is the last", last == PhotoList.rowCount - 1, detail: "\(last ?? -1)")
        let steps = 300
        for step in (0...steps).reversed() {
            list.scroll(to: Double(step) / Double(steps))
            await MainLoop.pause(16)
        }
        await shows(list, "after the way back, too")
    }

    private func checkPrefetching(_ list: PhotoList) async {
        await jump(list, to: 0.5)
        await shows(list, "in the middle, too")
        let rows = list.prefetched
        let isThere = await MainLoop.wait {
            rows.allSatisfy { list.pipeline.cachedImage(for: list.request($0)) != nil || RowWindow.fails($0) }
        }
        checks.check(
            "the next \(PrefetchPlan.depth) photos are loaded in advance",
            isThere && rows.count == PrefetchPlan.depth
                && !list.visibleRows.contains { rows.contains($0.number ?? -1) },
            detail: "\(rows.first ?? -1) to \(rows.last ?? -1)")
    }

    /// Scrolls to a place, and waits until GTK has laid out the rows there.
    private func jump(_ list: PhotoList, to place: Double) async {
        let expected = Double(PhotoList.rowCount) * place
        list.scroll(to: place)
        await MainLoop.wait(seconds: 5) {
            guard let number = list.visibleRows.first?.number else { return false }
            return abs(Double(number) - expected) < 100
        }
    }

    private func shows(_ list: PhotoList, _ what: String) async {
        func failsAtFirst(_ row: PhotoRow) -> Bool { row.retryButton.isShown && RowWindow.fails(row.number ?? 0) }
        let isShown = await MainLoop.wait {
            let rows = list.visibleRows
            return rows.count >= 5 && rows.allSatisfy { $0.showsItsPhoto || failsAtFirst($0) }
        }
        let rows = list.visibleRows
        let first = rows.first?.number ?? 0
        let isInOrder = rows.enumerated().allSatisfy { $1.number == first + $0 }
        checks.check(
            what, isShown && isInOrder, detail: "\(rows.count { $0.showsItsPhoto }) of \(rows.count), from \(first) on")
    }
}
