public import Tern

extension BindableView {
    /// Follows any stream on the main actor, in a slot: for view models of one's own.
    ///
    /// The binding that has the slot is replaced. This one ends with the stream, when the slot is given away or cancelled, or
    /// with the view, and nothing is received after that. An element that comes at once is received later than this call
    /// returns.
    ///
    /// - Parameters:
    ///   - task: What `ViewBinding.task` is to be; nil by default.
    ///   - receive: Is handed the view with each element. To hold the view weakly, if at all.
    @discardableResult
    public func bind<Element: Sendable>(
        _ stream: AsyncStream<Element>, of task: (any TaskHandle)? = nil, for key: BindingKey<ViewBinding>,
        receive: @escaping @MainActor (Self, Element) -> Void
    ) -> ViewBinding {
        let binding = ViewBinding(of: self, to: task)
        binding.entered(bindings.set(binding, for: key))
        binding.follow(stream, for: self, receive: receive) { [weak binding] _ in binding?.end(.finished) }
        return binding
    }
}
