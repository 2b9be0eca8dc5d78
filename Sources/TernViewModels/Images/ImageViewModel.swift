public import Tern
public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A view that shows pictures which are loaded.
///
/// ```swift
/// extension Photo: ImageViewModel {
///     func showImage(_ shown: ShownImage, in slot: ImageSlot) {
///         if let image = shown.image { draw(image) } else { clear() }
///     }
/// }
///
/// photo.loadImage(from: url, display: ImageDisplay(placeholder: .image(grey)))
/// ```
///
/// A load belongs to a slot of the view, `.image` if none is named; another load of the slot cancels it. The order within a
/// load: the one before is cancelled, the URL recorded, the placeholder shown, progress reset, activity begun, the picture
/// loaded; then activity ends, the picture is shown, and the end is told. Nothing of it comes after a cancellation, after
/// the slot was given to another load, or after the view's end, and nobody keeps the view alive.
@MainActor
public protocol ImageViewModel: BindableView {
    /// Shows something in a slot, or, for the content `.none`, clears it. Called on the main actor; for what is in memory
    /// within the call that loads.
    func showImage(_ shown: ShownImage, in slot: ImageSlot)

    /// The size of a slot in pixels, for `ImageDisplay.fitsView`; nil, the default, while it has none. Say by
    /// `imageSizesChanged()` when it has.
    func imageSize(for slot: ImageSlot) -> PixelSize?

    /// A slot's load waits for its picture. By default nothing is done. Not called for what is in memory.
    func beginImageActivity(in slot: ImageSlot)
    /// It waits no more: once for each begin, and before the picture is shown. By default nothing is done.
    func endImageActivity(in slot: ImageSlot)
    /// How far a slot's load is: first nothing, then each change. By default nothing is done.
    func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot)
    /// A load has ended with the `result` that it has, and was neither cancelled nor replaced. By default nothing is done.
    func imageLoadEnded(_ load: ImageLoad)
}

extension ImageViewModel {
    /// None.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { nil }
    /// Nothing.
    public func beginImageActivity(in slot: ImageSlot) {}
    /// Nothing.
    public func endImageActivity(in slot: ImageSlot) {}
    /// Nothing.
    public func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot) {}
    /// Nothing.
    public func imageLoadEnded(_ load: ImageLoad) {}
}

extension ImageViewModel {
    /// Loads the picture at a URL into a slot. Otherwise as the form with a request.
    ///
    /// Without a URL the load of before is cancelled all the same, the fallback or the placeholder shown, and the load ends
    /// with `.invalidURL` within this call; no cache and no network is asked.
    @discardableResult
    public func loadImage(
        from url: URL?, into slot: ImageSlot = .image, display: ImageDisplay = ImageDisplay(),
        completion: ImageLoad.Completion? = nil, receive: ImageLoad.Receiver? = nil
    ) -> ImageLoad {
        loadImage(ImageRequest(url), into: slot, display: display, completion: completion, receive: receive)
    }

    /// Loads the picture of a request into a slot, and cancels the load that had it. What is in memory is shown within this
    /// call. If the slot's load is one of the same request, which still waits for its picture, nothing new begins.
    ///
    /// - Parameters:
    ///   - completion: told the end, within this call if the picture is in memory; not told of a cancelled or replaced load.
    ///   - receive: given each picture as it comes, in place of the view, which is then the caller's to set.
    /// - Returns: The load; it needs not be held.
    @discardableResult
    public func loadImage(
        _ request: ImageRequest, into slot: ImageSlot = .image, display: ImageDisplay = ImageDisplay(),
        completion: ImageLoad.Completion? = nil, receive: ImageLoad.Receiver? = nil
    ) -> ImageLoad {
        let pipeline = currentImagePipeline
        var request = request
        if display.refreshesCached { request.options.revalidation = .always }
        if let load = bindings[slot], receive == nil, load.receiver == nil, load.loads(request, by: pipeline) {
            if let completion { load.completions.append(completion) }
            return load
        }
        let load = ImageLoad(request, in: slot, of: self, pipeline, display, receiver: receive)
        if let completion { load.completions.append(completion) }
        enter(load, adds: !request.options.presentation.cancelsPrevious)
        load.begin()
        return load
    }

    /// Shows what a task loads, in a slot, and cancels the load that had it. It is the view's from now on: what cancels the
    /// slot's load cancels the task.
    @discardableResult
    public func showImage(
        of task: ImageTask, into slot: ImageSlot = .image, display: ImageDisplay = ImageDisplay(),
        completion: ImageLoad.Completion? = nil
    ) -> ImageLoad {
        if let load = imageLoads.load(of: task, for: slot) {
            guard load.display == nil else {
                if let completion { load.completions.append(completion) }
                return load
            }
            // It was kept by its key alone: the task goes over to a load that shows it.
            imageLoads.remove(slot)
        }
        let load = ImageLoad(task.request, in: slot, of: self, nil, display)
        if let completion { load.completions.append(completion) }
        enter(load, adds: !task.request.options.presentation.cancelsPrevious)
        load.begin(task)
        return load
    }

    /// Cancels what is loaded into a slot. What it shows stays.
    public func cancelImageLoad(in slot: ImageSlot = .image) { imageLoads.cancel(slot) }

    /// Says that the view's sizes may have changed: loads that wait for one begin.
    public func imageSizesChanged() {
        for slot in existingImageSlots?.keys ?? [] {
            for load in bindings.contents(of: slot) { load.sizeMayBeKnown() }
        }
    }
}

extension ImageLoad {
    /// Whether it waits for its picture, and another of this request would be the same. Once a picture has come, who asks
    /// again may have cleared the view, and is to be shown it again.
    func loads(_ request: ImageRequest, by pipeline: ImagePipeline) -> Bool {
        guard isActive, last == nil, let own = self.pipeline, own === pipeline else { return false }
        return request.source.refusal == nil && own.isOneLoad(asked, request)
    }
}
