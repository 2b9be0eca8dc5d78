#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc

/// The files and arguments with which a `PeerServer` starts its program.
struct PeerConfiguration {
    let kind: PeerServer.Kind
    let folder: String
    let ports: PeerServer.Ports
    /// The port of the server behind this one.
    let behind: Int
    /// The alternative over HTTP/3 that caddy names; nil for itself.
    var offer: PeerServer.Offer?

    /// Writes the files, and returns the program with its arguments.
    func write() throws -> [String] {
        switch kind {
        case .nginx:
            let text = Nginx.configuration(
                plain: ports.plain, secure: ports.secure, upstream: behind, hasWorkers: true, folder)
            return ["nginx", "-p", folder, "-e", "stderr", "-c", try file("nginx.conf", text)]
        case .apache: return ["apache2", "-DFOREGROUND", "-f", try file("apache.conf", apache)]
        case .haproxyAndNginx, .haproxyAndApache: return ["haproxy", "-db", "-f", try file("haproxy.cfg", haproxy)]
        case .caddy:
            let file = try file("Caddyfile", caddy)
            return ["env", "HOME=\(folder)", "caddy", "run", "--adapter", "caddyfile", "--config", file]
        case .nghttpd:
            return [
                "nghttpd", "--address=127.0.0.1", "--htdocs=\(folder)", "--echo-upload", "--trailer=x-end: reached",
                "\(ports.secure)", "\(folder)/server.key", "\(folder)/server.pem",
            ]
        case .hypercorn:
            _ = try file("peer.py", Self.application)
            return [
                "env", "PYTHONPATH=\(folder)", Venv.program("python"), "-m", "hypercorn", "--workers", "0", "--bind",
                "127.0.0.1:\(ports.secure)", "--insecure-bind", "127.0.0.1:\(ports.plain)", "--certfile",
                "\(folder)/server.pem", "--keyfile",
                "\(folder)/server.key", "--graceful-timeout", "20", "peer:app",
            ]
        }
    }

    private func file(_ name: String, _ text: String) throws -> String {
        let path = "\(folder)/\(name)"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    private var apache: String {
        let modules = [
            "mpm_event", "authz_core", "filter", "deflate", "alias", "mime", "proxy", "proxy_http", "ssl", "http2",
            "expires", "headers",
        ]
        return """
            \(modules.map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n"))
            ServerRoot \(folder)
            DefaultRuntimeDir \(folder)
            PidFile \(folder)/apache.pid
            ServerName 127.0.0.1
            Listen 127.0.0.1:\(ports.plain)
            Listen 127.0.0.1:\(ports.secure) https
            \(geteuid() == 0 ? "User www-data\nGroup www-data" : "")
            ErrorLog /dev/stderr
            TypesConfig /etc/mime.types
            ServerLimit 4
            StartServers 1
            ThreadLimit 150
            ThreadsPerChild 150
            MaxRequestWorkers 600
            H2MinWorkers 120
            H2MaxWorkers 150
            H2MaxSessionStreams 200
            Protocols h2 http/1.1
            MaxKeepAliveRequests 0
            DocumentRoot \(folder)
            Alias /packed/ \(folder)/files/
            ProxyPass /via/ http://127.0.0.1:\(behind)/
            <Location /packed/>
                SetOutputFilter DEFLATE
            </Location>
            Alias /kept/ \(folder)/files/
            Alias /kept-packed/ \(folder)/files/
            Alias /no-store/ \(folder)/files/
            Alias /no-cache/ \(folder)/files/
            <LocationMatch ^/kept>
                ExpiresActive On
                ExpiresDefault "access plus 60 seconds"
            </LocationMatch>
            <Location /kept-packed/>
                SetOutputFilter DEFLATE
            </Location>
            <Location /no-store/>
                Header set Cache-Control no-store
            </Location>
            <Location /no-cache/>
                Header set Cache-Control no-cache
            </Location>
            <VirtualHost 127.0.0.1:\(ports.secure)>
                SSLEngine on
                SSLCertificateFile \(folder)/server.pem
                SSLCertificateKeyFile \(folder)/server.key
            </VirtualHost>

            """
    }

    private var haproxy: String {
        """
        global
            maxconn 1000
            nbthread 2
        defaults
            mode http
            timeout connect 20s
            timeout client 60s
            timeout server 60s
        frontend front
            bind 127.0.0.1:\(ports.plain)
            bind 127.0.0.1:\(ports.secure) ssl crt \(folder)/both.pem alpn h2,http/1.1
            default_backend back
        backend back
            server behind 127.0.0.1:\(behind)

        """
    }

    private var caddy: String {
        """
        {
            admin off
            auto_https off
            grace_period 20s
        }
        (paths) {
            bind 127.0.0.1
            root * \(folder)
            handle /files/* {
                file_server
            }
            handle_path /packed/* {
                root * \(folder)/files
                encode gzip
                file_server
            }
            handle_path /via/* {
                reverse_proxy 127.0.0.1:\(behind)
            }
        }
        http://:\(ports.plain) {
            import paths
        }
        https://:\(ports.secure) {
            tls \(folder)/server.pem \(folder)/server.key
            \(offerField)
            import paths
        }
        \(misdirectedSite)

        """
    }

    private var offerField: String {
        switch offer {
        case .port(let port), .misdirected(let port): "header Alt-Svc `h3=\":\(port)\"`"
        case nil: ""
        }
    }

    /// A site that serves no other origin.
    private var misdirectedSite: String {
        guard case .misdirected(let port) = offer else { return "" }
        return """
            https://:\(port) {
                bind 127.0.0.1
                tls \(folder)/server.pem \(folder)/server.key
                respond 421
            }
            """
    }

    /// An application for hypercorn. Beside the paths of `PeerServer`, `/trailers` ends with the fields `x-end` and
    /// `x-length`.
    private static let application = #"""
        import asyncio, gzip, os

        folder = os.path.dirname(os.path.abspath(__file__)) + "/files/"
        arrived, gate = 0, None
        requests = []

        async def parts(receive):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return
                if message.get("body"):
                    yield message["body"]
                if not message.get("more_body"):
                    return

        async def app(scope, receive, send):
            global arrived, gate
            if scope["type"] == "lifespan":
                while True:
                    message = await receive()
                    await send({"type": message["type"] + ".complete"})
                    if message["type"] == "lifespan.shutdown":
                        return
            path, method = scope["path"], scope["method"]
            fields = dict(scope["headers"])

            async def head(status=200, headers=(), **more):
                await send({"type": "http.response.start", "status": status, "headers": list(headers), **more})

            async def body(data=b"", more=False):
                await send({"type": "http.response.body", "body": data, "more_body": more})

            if path == "/via/echo":
                await head()
                async for part in parts(receive):
                    await body(part, True)
                await body()
            elif path == "/via/collect":
                data = b"".join([part async for part in parts(receive)])
                await head()
                await body(data)
            elif path == "/via/empty":
                await head(204)
                await body()
            elif path == "/via/chunked":
                await head()
                data = open(folder + "big", "rb").read()
                for start in range(0, len(data), 60000):
                    await body(data[start:start + 60000], True)
                await body()
            elif path == "/via/early":
                data = open(folder + "big", "rb").read()
                await head(200, [(b"content-length", b"%d" % len(data))])
                await body(data[:len(data) // 2], True)
                raise RuntimeError("ends early, as it should")
            elif path == "/via/together":
                gate = gate or asyncio.Event()
                arrived += 1
                if arrived >= 100:
                    gate.set()
                await gate.wait()
                await head()
                await body(b"together")
            elif path == "/trailers":
                await head(200, [(b"trailer", b"x-end, x-length")], trailers=True)
                await body(b"part one, ", True)
                await body(b"part two")
                fields = [(b"x-end", b"reached"), (b"x-length", b"18")]
                await send({"type": "http.response.trailers", "headers": fields, "more_trailers": False})
            elif os.path.exists(folder + path.split("/")[-1]):
                data = open(folder + path.split("/")[-1], "rb").read()
                etag = b'"%d"' % len(data)
                if fields.get(b"if-none-match") == etag:
                    await head(304, [(b"etag", etag)])
                    return await body()
                headers = [(b"etag", etag)]
                if path.startswith("/packed/"):
                    data = gzip.compress(data)
                    headers.append((b"content-encoding", b"gzip"))
                headers.append((b"content-length", b"%d" % len(data)))
                await head(200, headers)
                if method != "HEAD":
                    for start in range(0, len(data), 1 << 18):
                        await body(data[start:start + (1 << 18)], True)
                await body()
            else:
                await head(404)
                await body()

        """#
}
#endif
