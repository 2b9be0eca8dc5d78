import GalleryChecks
import GalleryViews
import GtkBridge
import TernViewModels

extension SelfCheck {
    func checkDownload() async {
        let (bar, spinner, button) = (gallery.bar, gallery.spinner, gallery.pauseButton)
        // Long enough that a machine with much else to do pauses it in time.
        gallery.startDownload(of: 4_000_000, taking: 8)
        checks.check("the spinner turns as soon as it is bound", spinner.isSpinning)
        await MainLoop.wait { bar.fraction > 0.2 }
        button.click()
        await MainLoop.wait { !spinner.isSpinning && button.text == "Resume" }
        let held = await restingPlace(of: bar)
        checks.check(
            "a pause holds the bar and stops the spinner", held < 1 && !spinner.isSpinning, "at \(Int(held * 100)) %")
        button.click()
        let goesOn = await MainLoop.wait { spinner.isSpinning && button.text == "Pause" }
        let isMoving = await MainLoop.wait { bar.fraction > held }
        checks.check("a resume goes on from there, and the spinner turns again", goesOn && isMoving)
        let isOver = await MainLoop.wait { bar.fraction == 1 && !spinner.isSpinning && !button.isEnabled }
        checks.check("the bar is full at the end, the spinner stands, and there is nothing to pause", isOver)
    }

    /// Where a bar comes to stand: what had come before a pause may still be on its way to it. Without a pause at its end.
    private func restingPlace(of bar: ProgressBar) async -> Double {
        while true {
            let place = bar.fraction
            await MainLoop.pause(400)
            if bar.fraction == place { return place }
        }
    }

    func checkPull() async {
        let pull = gallery.pull
        gallery.scroll.offset = 0
        await MainLoop.wait {
            gallery.visibleCells.first?.number == 0 && gallery.visibleCells.allSatisfy(\.showsItsPhoto)
        }
        let binds = gallery.grid.bindCount
        guard Pointer.turnWheel(up: 8, over: gallery.scroll, in: gallery.window) else {
            return checks.skip("pull to refresh", because: "xdotool is not there")
        }
        // Whether it still goes on when it is looked at is not known.
        let isBegun = await MainLoop.wait { pull.beginCount > 0 }
        checks.check("pulling at the upper end refreshes", isBegun && pull.refreshBinding != nil)
        _ = Pointer.turnWheel(up: 8, over: gallery.scroll, in: gallery.window)
        // A wheel that turns after the end, since its program was late, is another pull.
        let isEnded = await MainLoop.wait { !pull.isRefreshing }
        let beginCount = pull.beginCount
        checks.check("one pull begins once, however long it is, and ends", isEnded && beginCount == 1, "\(beginCount)")
        let isShown = await MainLoop.wait {
            gallery.grid.bindCount > binds && gallery.visibleCells.allSatisfy(\.showsItsPhoto)
        }
        checks.check("after it the photos are shown again", isShown)
    }

    func checkButton() async {
        let button = gallery.photoButton
        gallery.loadButton()
        await MainLoop.wait {
            Gallery.buttonPhotos.allSatisfy { button.imagePhase(of: .button(.image, $0.state)).isSuccess }
        }
        checks.check("the button shows its normal photo", await shows(.normal))
        if Pointer.press(button, in: gallery.window) {
            checks.check("pressed by the pointer, its highlighted photo", await shows(.highlighted))
            Pointer.release()
            checks.check("released, its normal photo again", await shows(.normal))
        } else {
            checks.skip("the button when pressed", because: "xdotool is not there")
        }
        button.isEnabled = false
        checks.check("without reaction, its photo for that", await shows(.disabled))
        button.isEnabled = true
    }

    /// Whether the photo of a state comes to be drawn, soon.
    private func shows(_ state: ButtonState) async -> Bool {
        guard let photo = Gallery.buttonPhotos.first(where: { $0.state == state }) else { return false }
        return await MainLoop.wait(seconds: 5) {
            guard let drawn = gallery.photoButton.picture.drawn() else { return false }
            return Pixels(drawn).sun() == Photo(number: photo.number).sun
        }
    }
}

/// The user's pointer, by the program xdotool: what it does goes the whole way through X and GTK.
@MainActor
enum Pointer {
    static func turnWheel(up steps: Int, over peer: Peer, in window: Window) -> Bool {
        act(over: peer, in: window, "click --repeat \(steps) --delay 20 4")
    }

    static func press(_ peer: Peer, in window: Window) -> Bool { act(over: peer, in: window, "mousedown 1") }

    static func release() { _ = MainLoop.start("xdotool mouseup 1") }

    private static func act(over peer: Peer, in window: Window, _ what: String) -> Bool {
        guard let frame = window.screenFrame(of: peer) else { return false }
        let (x, y) = (frame.x + frame.width / 2, frame.y + frame.height / 2)
        return MainLoop.start("xdotool mousemove \(x) \(y) \(what)")
    }
}
