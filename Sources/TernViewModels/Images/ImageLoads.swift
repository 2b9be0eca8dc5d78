public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The loads of one view, by key. They are available to any view, including one that shows no images through a view
/// model.
///
/// ```swift
/// let task = ImagePipeline.shared.task(for: request)
/// cell.imageLoads.set(task, for: .badge)          // cancels the load that had the key
/// cell.imageLoads.cancelAll()                     // when the cell is used again
/// ```
///
/// A load leaves its key at its end, and affects no other load.
@MainActor
public struct ImageLoads {
    let view: any BindableView

    /// Stores a task by a key, and cancels the other tasks of the key. Nothing is shown; the caller shows the image.
    @discardableResult
    public func set(_ task: ImageTask, for key: ImageSlot) -> ImageLoad { register(task, for: key, adds: false) }

    /// Stores a task by a key next to the other tasks of the key. `cancel` cancels them all.
    @discardableResult
    public func add(_ task: ImageTask, for key: ImageSlot) -> ImageLoad { register(task, for: key, adds: true) }

    /// Returns the load of a task, if it is the newest of the key.
    func load(of task: ImageTask, for key: ImageSlot) -> ImageLoad? {
        self[key].flatMap { $0.isActive && $0.task === task ? $0 : nil }
    }

    private func register(_ task: ImageTask, for key: ImageSlot, adds: Bool) -> ImageLoad {
        if let load = load(of: task, for: key) { return load }
        let load = ImageLoad(task.request, in: key, of: view, pipeline: nil, display: nil)
        view.register(load, adds: adds)
        load.begin(task)
        return load
    }

    /// The load of a key, or the newest of several; nil if none is active.
    public subscript(key: ImageSlot) -> ImageLoad? { view.bindings[key] }

    /// Returns all loads of a key, oldest first.
    public func all(for key: ImageSlot) -> [ImageLoad] { view.bindings.contents(of: key) }

    /// Returns the URL of the last load of a key, also after its end; nil for a load without a URL.
    public func url(for key: ImageSlot) -> URL? { view.existingImageSlots?[key].url }

    /// Returns the phase of a key's slot.
    public func phase(of key: ImageSlot) -> ImagePhase { view.existingImageSlots?[key].phase ?? .idle }

    /// Cancels the loads of a key, and removes them from it. The view keeps what it shows.
    public func cancel(_ key: ImageSlot) { view.bindings.cancel(key) }

    /// Removes the loads of a key without cancelling them. They continue for their callers, and the view gets no more
    /// results.
    public func remove(_ key: ImageSlot) {
        let loads = all(for: key)
        view.bindings.remove(key)
        for load in loads { load.detach() }
    }

    /// Cancels all loads of the view, and no other bindings.
    public func cancelAll() {
        for key in view.existingImageSlots?.keys ?? [] { cancel(key) }
    }
}

extension BindableView {
    /// The image loads of the view, by key.
    public var imageLoads: ImageLoads { ImageLoads(view: self) }

    /// Assigns a slot to a load. The displaced load is cancelled before this call returns.
    func register(_ load: ImageLoad, adds: Bool) {
        // Create the slots before the load can end, so that `cancelAll` knows its key.
        _ = imageSlots
        load.register(adds ? bindings.add(load, for: load.slot) : bindings.set(load, for: load.slot))
    }
}
