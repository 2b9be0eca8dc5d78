import GRPCCore

/// The configurations of methods, by their names. Pure.
struct MethodConfigTable: Sendable {
    private let configs: [MethodConfig.Name: MethodConfig]

    /// Of two configurations of one name, the last one applies.
    init(_ config: ServiceConfig) {
        var configs: [MethodConfig.Name: MethodConfig] = [:]
        for method in config.methodConfig {
            for name in method.names { configs[name] = method }
        }
        self.configs = configs
    }

    /// The configuration of a method, else that of its service, else that of all.
    subscript(_ descriptor: MethodDescriptor) -> MethodConfig? {
        if configs.isEmpty { return nil }
        var name = MethodConfig.Name(service: descriptor.service.fullyQualifiedService, method: descriptor.method)
        if let config = configs[name] { return config }
        name.method = ""
        if let config = configs[name] { return config }
        name.service = ""
        return configs[name]
    }
}
