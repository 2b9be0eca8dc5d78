public import Tern
public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A view that shows loaded images.
///
/// ```swift
/// extension Photo: ImageViewModel {
///     func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
///         if let image = update.image { draw(image) } else { clear() }
///     }
/// }
///
/// photo.loadImage(from: url, display: ImageDisplay(placeholder: .image(grey)))
/// ```
///
/// A load belongs to a slot of the view, by default `.image`. Another load of the slot cancels it, unless
/// `ImageDisplay.cancelsPrevious` is false. A load takes these steps in order: it cancels the previous load, records
/// the URL, and starts in the pipeline. An image in memory is shown at once; the end is reported then, or after the
/// revalidation. Otherwise the load shows the placeholder, reports a progress of zero and begins the activity; later it
/// reports the whole progress if there is an image, ends the activity, shows the image or the failure, and reports its
/// end. After a cancellation, or once another load
/// has cancelled this one, the only further step is the end of an activity that has begun. A released view gets no
/// call, and no load keeps the view alive.
@MainActor
public protocol ImageViewModel: BindableView {
    /// Shows content in a slot, or clears the slot for the content `.none`. Called on the main actor; for an image in
    /// memory, within the call that loads.
    func showImage(_ update: ImageUpdate, in slot: ImageSlot)

    /// Returns the size of a slot in pixels, for `ImageDisplay.decodesToViewSize`; nil, the default, while it has none.
    /// Call `imageSizesChanged()` when the size becomes known.
    func imageSize(for slot: ImageSlot) -> PixelSize?

    /// Called when a load waits for its image. Does nothing by default. Not called for an image in memory.
    func beginImageActivity(in slot: ImageSlot)
    /// Called when the load no longer waits: once for each begin, and before the image is shown. Does nothing by
    /// default.
    func endImageActivity(in slot: ImageSlot)
    /// Shows the progress of a load: first zero, then changes, and before the first image a last element, whose
    /// `isFinished` is true and whose `fractionCompleted` is 1. It has 0 of 0 bytes if the load fetched none, because the image
    /// is on the disk or another load has fetched it. A load without an image has no last element, and an image in
    /// memory no progress. Does nothing by default.
    func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot)
    /// Called when a load has ended with its `result`, and was neither cancelled nor replaced. Does nothing by default.
    func imageLoadEnded(_ load: ImageLoad)
}

extension ImageViewModel {
    /// Returns nil.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { nil }
    /// Does nothing.
    public func beginImageActivity(in slot: ImageSlot) {}
    /// Does nothing.
    public func endImageActivity(in slot: ImageSlot) {}
    /// Does nothing.
    public func showImageProgress(_ progress: Session.Progress, in slot: ImageSlot) {}
    /// Does nothing.
    public func imageLoadEnded(_ load: ImageLoad) {}
}

extension ImageViewModel {
    /// Loads the image at a URL into a slot. Otherwise works like the method with a request.
    ///
    /// Without a URL, the call cancels the previous load, shows the fallback or the placeholder, and ends the new load
    /// with `.invalidURL` before it returns. It uses no cache and no network.
    @discardableResult
    public func loadImage(
        from url: URL?, into slot: ImageSlot = .image, display: ImageDisplay = ImageDisplay(),
        completion: ImageLoad.Completion? = nil, receive: ImageLoad.Receiver? = nil
    ) -> ImageLoad {
        loadImage(from: ImageRequest(url), into: slot, display: display, completion: completion, receive: receive)
    }

    /// Loads the image of a request into a slot, and cancels the previous load of the slot. An image in memory is shown
    /// before this call returns. If the slot already has a load of the same request and display behaviour that waits
    /// for its image, the call returns that load.
    ///
    /// - Parameters:
    ///   - completion: Called with the result, before this call returns if the image is in memory. Not called for a
    ///     cancelled or replaced load.
    ///   - receive: Called with each image instead of the view, which the caller then sets.
    /// - Returns: The load. The caller need not keep it.
    @discardableResult
    public func loadImage(
        from request: ImageRequest, into slot: ImageSlot = .image, display: ImageDisplay = ImageDisplay(),
        completion: ImageLoad.Completion? = nil, receive: ImageLoad.Receiver? = nil
    ) -> ImageLoad {
        let pipeline = currentImagePipeline
        var request = request
        if display.revalidatesCachedImage { request.options.revalidation = .always }
        if let load = bindings[slot], receive == nil, load.receiver == nil,
            load.isEquivalent(to: request, display: display, pipeline: pipeline)
        {
            if let completion { load.completions.append(completion) }
            return load
        }
        let load = ImageLoad(request, in: slot, of: self, pipeline: pipeline, display: display, receiver: receive)
        if let completion { load.completions.append(completion) }
        register(load, adds: !display.cancelsPrevious)
        load.begin()
        return load
    }

    /// Shows the image of a task in a slot, and cancels the previous load of the slot. The view owns the task from now
    /// on: cancelling the slot's load cancels the task.
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
            // The task was only stored by its key: move it to a load that shows it.
            imageLoads.remove(slot)
        }
        let load = ImageLoad(task.request, in: slot, of: self, pipeline: nil, display: display)
        if let completion { load.completions.append(completion) }
        register(load, adds: !display.cancelsPrevious)
        load.begin(task)
        return load
    }

    /// Cancels the load of a slot. The slot keeps its content.
    public func cancelImageLoad(in slot: ImageSlot = .image) { imageLoads.cancel(slot) }

    /// Begins the loads that wait for a size. Call it when the sizes of the view may have changed.
    public func imageSizesChanged() {
        for slot in existingImageSlots?.keys ?? [] {
            for load in bindings.contents(of: slot) { load.viewSizeMayHaveChanged() }
        }
    }
}

extension ImageLoad {
    /// Returns a Boolean value that indicates whether the load still waits for its image, and a new load of the request
    /// would be the same. After an image has arrived, a new request shows it again, because the caller may have cleared
    /// the view.
    func isEquivalent(to request: ImageRequest, display: ImageDisplay, pipeline: ImagePipeline) -> Bool {
        guard isActive, lastResponse == nil, let own = self.pipeline, own === pipeline,
            self.display?.deliversLike(display) ?? false
        else { return false }
        return request.refusal == nil && own.isOneLoad(originalRequest, request)
    }
}

extension ImageViewModel {
    /// Returns the phase of a slot.
    public func imagePhase(of slot: ImageSlot = .image) -> ImagePhase { imageLoads.phase(of: slot) }

    /// Cancels the load and the animation of a slot, and clears the slot.
    public func clearImage(in slot: ImageSlot = .image) {
        bindings.cancel(slot)
        existingImageSlots?.change(slot) { $0.clear() }
        present(.none, in: slot)
    }

    /// Returns the animation that plays in a slot; nil if there is none.
    public func imagePlayback(in slot: ImageSlot = .image) -> ImagePlayback? { bindings[.playback(slot)] }

    /// Sets whether the view is on the screen. While it is not, its animations are paused. Its loads that wait follow
    /// those of visible views with the same priority. Until the first call, animations play, and
    /// `ImageRequest.isVisible` decides the order of the loads.
    public func setImagesVisible(_ isVisible: Bool) {
        let slots = imageSlots
        slots.isVisible = isVisible
        for slot in slots.keys {
            for load in bindings.contents(of: slot) { load.task?.isVisible = isVisible }
            imagePlayback(in: slot)?.setVisible(isVisible)
        }
    }

    /// Shows content in place of the current content, including an animation.
    func present(
        _ content: ImageContent, in slot: ImageSlot, transition: ImageTransition? = nil,
        animation: AnimatedImage? = nil
    ) {
        bindings.cancel(.playback(slot))
        let phase = imagePhase(of: slot)
        showImage(ImageUpdate(content, phase: phase, transition: transition, animation: animation), in: slot)
    }

    /// Plays an animation in a slot from its first frame.
    func play(_ animation: AnimatedImage, in slot: ImageSlot, display: ImageDisplay) {
        guard let options = display.playback else { return }
        let playback = ImagePlayback(AnimationPlayer(animation, options: options, clock: display.clock))
        let registration = bindings.set(playback, for: .playback(slot))
        playback.begin(registration, in: slot, of: self, isVisible: imageSlots.isVisible ?? true)
    }
}

extension ImageViewModel {
    /// The pipeline of this view; nil, the default, to use the pipeline of its type.
    public var imagePipeline: ImagePipeline? {
        get { bindings[value: .pipeline] }
        set { bindings[value: .pipeline] = newValue }
    }

    /// The pipeline of all views of this type and of subclasses without a pipeline of their own; nil, the default, to
    /// use the pipeline of the superclass, and finally `ImagePipeline.shared`.
    public static var imagePipeline: ImagePipeline? {
        get { PipelineRegistry.shared[ObjectIdentifier(Self.self)] }
        set { PipelineRegistry.shared.set(newValue, for: Self.self) }
    }

    /// The pipeline that loads for this view: its own, else that of the nearest type, else the shared pipeline.
    public var currentImagePipeline: ImagePipeline {
        imagePipeline ?? PipelineRegistry.shared.nearest(to: type(of: self)) ?? .shared
    }
}

extension BindingKey<ImagePipeline> {
    static var pipeline: Self { Self("image pipeline") }
}

/// Holds the pipelines that were set for types.
@MainActor
private final class PipelineRegistry {
    private struct Entry {
        let type: AnyClass
        /// Returns a Boolean value that indicates whether a type is this type or a subclass of it.
        let covers: (AnyClass) -> Bool
        let pipeline: ImagePipeline
    }

    static let shared = PipelineRegistry()

    private var entries: [ObjectIdentifier: Entry] = [:]

    subscript(type: ObjectIdentifier) -> ImagePipeline? { entries[type]?.pipeline }

    func set<View: AnyObject>(_ pipeline: ImagePipeline?, for type: View.Type) {
        entries[ObjectIdentifier(type)] = pipeline.map { Entry(type: type, covers: { $0 is View.Type }, pipeline: $0) }
    }

    /// Returns the pipeline of the nearest type. All matching types are superclasses of each other; return the most
    /// derived one.
    func nearest(to type: AnyClass) -> ImagePipeline? {
        guard !entries.isEmpty else { return nil }
        let covering = entries.values.filter { $0.covers(type) }
        return covering.first { entry in covering.allSatisfy { $0.covers(entry.type) } }?.pipeline
    }
}
