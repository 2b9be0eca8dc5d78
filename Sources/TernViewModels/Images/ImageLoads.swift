public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The loads of one view, by key: for any view, whether or not it shows pictures by a view model.
///
/// ```swift
/// let task = ImagePipeline.shared.task(for: request)
/// cell.imageLoads.set(task, for: .badge)          // cancels the load that had the key
/// cell.imageLoads.cancelAll()                     // when the cell is used again
/// ```
/// A load leaves its key at its end, and takes no other load with it.
@MainActor
public struct ImageLoads {
    let view: any BindableView

    /// Keeps a task by a key, and cancels the others that had it. Nothing is shown: that is the caller's affair.
    @discardableResult
    public func set(_ task: ImageTask, for key: ImageSlot) -> ImageLoad { enter(task, key, adds: false) }

    /// Keeps a task by a key beside those that have it: `cancel` reaches them all.
    @discardableResult
    public func add(_ task: ImageTask, for key: ImageSlot) -> ImageLoad { enter(task, key, adds: true) }

    /// The load of a task that has the key to itself, or is the last of several that have it.
    func load(of task: ImageTask, for key: ImageSlot) -> ImageLoad? {
        self[key].flatMap { $0.isActive && $0.task === task ? $0 : nil }
    }

    private func enter(_ task: ImageTask, _ key: ImageSlot, adds: Bool) -> ImageLoad {
        if let load = load(of: task, for: key) { return load }
        let load = ImageLoad(task.request, in: key, of: view, nil, nil)
        view.enter(load, adds: adds)
        load.begin(task)
        return load
    }

    /// The load of a key, of several the one that came last; nil when none goes on.
    public subscript(key: ImageSlot) -> ImageLoad? { view.bindings[key] }

    /// All loads of a key, oldest first.
    public func all(for key: ImageSlot) -> [ImageLoad] { view.bindings.contents(of: key) }

    /// What was last loaded by a key, also after its end; nil for what has no URL.
    public func url(for key: ImageSlot) -> URL? { view.existingImageSlots?[key].url }

    /// How far a key's slot is.
    public func phase(of key: ImageSlot) -> ImagePhase { view.existingImageSlots?[key].phase ?? .idle }

    /// Cancels the loads of a key, and takes them out of it. What the view shows stays.
    public func cancel(_ key: ImageSlot) { view.bindings.cancel(key) }

    /// Takes the loads of a key out of it without cancelling: they go on for whoever awaits them, and the view hears no more
    /// of them.
    public func remove(_ key: ImageSlot) {
        let loads = all(for: key)
        view.bindings.remove(key)
        for load in loads { load.wasRemoved() }
    }

    /// Cancels all loads of the view, and nothing else that is bound to it.
    public func cancelAll() {
        for key in view.existingImageSlots?.keys ?? [] { cancel(key) }
    }
}

extension BindableView {
    /// The view's loads of pictures, by key.
    public var imageLoads: ImageLoads { ImageLoads(view: self) }

    /// Gives a slot to a load; whoever had it is cancelled within this call.
    func enter(_ load: ImageLoad, adds: Bool) {
        // The slots exist before the load can end, so that its key is known to `cancelAll`.
        _ = imageSlots
        load.enter(adds ? bindings.add(load, for: load.slot) : bindings.set(load, for: load.slot))
    }
}
