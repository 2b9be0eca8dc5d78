import Foundation
import Tern
import TernImages
import TernViewModels

#if canImport(UIKit)
import UIKit
#elseif canImport(AppKit)
import AppKit
#endif

/// The checks of what the widgets of this system show: one line each.
@MainActor
final class SelfCheck {
    private var failures = 0
    private var count = 0

    /// Returns the exit code: 0 if all checks hold.
    func run() async -> Int32 {
        do {
            let gallery = try Gallery()
            await checkList(gallery)
            if let photo = gallery.photos.first {
                await checkPrefetching(gallery, after: photo)
                await checkMirror(gallery.photos)
                await checkRetry(gallery.photos)
                await checkImageView(photo)
                await checkButton(photo)
            }
            await checkProgress(gallery)
        } catch {
            check("the server of the photos starts", false, "\(error)")
        }
        print("\(count - failures) of \(count) checks hold")
        return failures == 0 ? 0 : 1
    }

    private func check(_ statement: String, _ holds: Bool, _ detail: String = "") {
        count += 1
        if !holds { failures += 1 }
        print("\(holds ? "ok  " : "FAIL") \(statement)\(detail.isEmpty ? "" : ": \(detail)")")
    }

    private func checkList(_ gallery: Gallery) async {
        await gallery.refresh()
        let before = gallery.photos
        check("the list has 200 photos", before.count == 200, gallery.problem?.description ?? "")
        await gallery.refresh()
        check("a refresh brings newer photos", gallery.photos.first != before.first)
    }

    private func checkPrefetching(_ gallery: Gallery, after photo: Photo) async {
        let batches = gallery.prefetch(after: photo)
        var loaded = 0
        for batch in batches { loaded += await batch.finished().finished }
        check("20 photos are loaded in advance", loaded == 20, "\(loaded)")
        guard gallery.photos.count > 1 else { return }
        let model = ImageModel()
        let load = model.loadImage(from: gallery.photos[1].url)
        check("a photo that was loaded in advance is shown at once", model.image != nil && load.result != nil)
    }

    private func checkMirror(_ photos: [Photo]) async {
        guard let photo = photos.first(where: { $0.id % 10 == 9 && !Photo.failsOnce($0.id) }) else { return }
        let model = ImageModel()
        let result = await finished(model.loadImage(from: photo.request))
        check("a photo that the first place has not comes from the mirror", model.image != nil, result)
    }

    private func checkRetry(_ photos: [Photo]) async {
        guard let photo = photos.last(where: { Photo.failsOnce($0.id) }) else { return }
        let model = ImageModel()
        let display = ImageDisplay(placeholder: .thumbHash(photo.hash), current: .cleared)
        _ = await finished(model.loadImage(from: photo.request, display: display))
        check("a photo that fails says so", model.error != nil)
        var request = photo.request
        request.options.retriesFailed = true
        let result = await finished(model.loadImage(from: request, display: display))
        check("a second try shows it", model.error == nil && model.phase == .success(.network), result)
    }

    private func checkProgress(_ gallery: Gallery) async {
        let (progress, activity) = (ObservableProgress(), ObservableActivity())
        let task = gallery.download(rate: 16_000_000)
        progress.bindDownloadProgress(of: task)
        activity.bindActivity(to: task)
        check("the spinner turns while the download runs", activity.isActivityShown)
        do throws(NetworkError) {
            let file = try await task.value
            let size = (try? FileManager.default.attributesOfItem(atPath: file.path))?[.size] as? Int
            check("the download is whole", size == 4_000_000, "\(size ?? 0) bytes")
        } catch {
            check("the download ends", false, error.description)
        }
        // The bindings deliver what has happened in turns of the main actor.
        for _ in 0..<1_000 where !progress.isFinished || activity.isActivityShown { await Task.yield() }
        check("the bar is full", progress.isFinished && progress.fraction == 1)
        check("the spinner stops", !activity.isActivityShown)
    }

    #if canImport(UIKit)
    private func checkImageView(_ photo: Photo) async {
        let view = UIImageView(frame: CGRect(x: 0, y: 0, width: 80, height: 60))
        let result = await finished(view.loadImage(from: photo.url))
        check("UIImageView shows a photo", view.image != nil, result)
        view.loadImage(from: nil)
        check("UIImageView shows nothing without a URL", view.image == nil)
    }

    private func checkButton(_ photo: Photo) async {
        let button = UIButton(configuration: .plain())
        let result = await finished(button.loadImage(from: photo.url, for: .normal))
        check("UIButton shows a photo", button.image(for: .normal) != nil, result)
        check("its configuration has the photo", button.configuration?.image != nil)
    }
    #elseif canImport(AppKit)
    private func checkImageView(_ photo: Photo) async {
        let view = NSImageView(frame: NSRect(x: 0, y: 0, width: 80, height: 60))
        let result = await finished(view.loadImage(from: photo.url))
        check("NSImageView shows a photo", view.image != nil, result)
        view.loadImage(from: nil)
        check("NSImageView shows nothing without a URL", view.image == nil)
    }

    private func checkButton(_ photo: Photo) async {
        let button = NSButton(frame: NSRect(x: 0, y: 0, width: 80, height: 60))
        let result = await finished(button.loadImage(from: photo.url, for: .normal))
        check("NSButton shows a photo", button.image != nil, result)
    }
    #endif

    /// Waits for a load, and returns its error in words.
    private func finished(_ load: ImageLoad) async -> String {
        do throws(ImageError) {
            _ = try await load.value
            return ""
        } catch {
            return error.message
        }
    }
}
