#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
import Testing

extension Nginx {
    /// Suites that need nginx are skipped where it is not installed. In CI, which installs it, they fail instead.
    static let isExpected =
        ProcessInfo.processInfo.environment["CI"] == "true" || Programs.areInstalled(["nginx", "openssl"])
    static let absence: Comment = "nginx and openssl are not both installed; `make test` installs them"

    /// The configuration of a process in the foreground, with these routes: `/hello`, `/connection` (connection
    /// number and protocol), `/echo` (sends a small body back), `/files/`, `/packed/` (gzip), `/trickle/` (2 MiB at
    /// once and the rest in minutes, unless the request has a range) and `/private/` (the same, for the users in the
    /// file `users`), `/put/` (PUT stores a file), `/via/` (the upstream), `/proxy-authorization` (the field of that
    /// name), `/407` (a challenge like that of a proxy), and the locations of `cachedLocations`.
    ///
    /// nginx can end gracefully only if it has worker processes.
    static func configuration(
        plain: Int, secure: Int, upstream: Int?, hasWorkers: Bool, _ folder: String
    ) -> String {
        // Workers of another user cannot read the folder of root.
        let user = hasWorkers && geteuid() == 0 ? "user root;" : ""
        return """
            daemon off;
            master_process \(hasWorkers ? "on" : "off");
            \(user)
            error_log stderr notice;
            pid \(folder)/nginx.pid;
            events { worker_connections 1024; }
            http {
                log_format short '$request_method $request_uri $server_protocol $status';
                access_log \(folder)/access.log short;
                client_body_temp_path \(folder)/body;
                proxy_temp_path \(folder)/proxy;
                fastcgi_temp_path \(folder)/fastcgi;
                uwsgi_temp_path \(folder)/uwsgi;
                scgi_temp_path \(folder)/scgi;
                default_type text/plain;
                client_max_body_size 0;
                keepalive_requests 1000000;
                # Whoever asks for the rest of a file gets it at once.
                map $http_range $trickle { "" 100k; default 0; }
                server {
                    listen 127.0.0.1:\(plain) backlog=1024;
                    listen 127.0.0.1:\(secure) ssl http2 backlog=1024;
                    ssl_certificate \(folder)/server.pem;
                    ssl_certificate_key \(folder)/server.key;
                    root \(folder);
                    location = /hello { return 200 "hello"; }
                    location = /connection { return 200 "$connection $server_protocol"; }
                    location = /proxy-authorization { return 200 "<$http_proxy_authorization>"; }
                    location = /407 { add_header Proxy-Authenticate 'Basic realm="x"' always; return 407; }
                    location = /echo {
                        client_body_in_single_buffer on;
                        proxy_set_header X-Body $request_body;
                        proxy_pass http://127.0.0.1:\(plain)/said;
                    }
                    location = /said { return 200 "$request_method $http_content_type $http_x_body"; }
                    location /files/ { }
                    location /trickle/ { limit_rate_after 2m; limit_rate $trickle; alias \(folder)/files/; }
                    location /packed/ { gzip on; gzip_min_length 1; gzip_types text/plain; alias \(folder)/files/; }
                    location /private/ {
                        limit_rate_after 2m;
                        limit_rate $trickle;
                        auth_basic "behind a door";
                        auth_basic_user_file \(folder)/users;
                        alias \(folder)/files/;
                    }
                    location /put/ { dav_methods PUT; create_full_put_path on; }
            \(cachedLocations(folder))
                    location /via/ {
                        proxy_http_version 1.1;
                        proxy_read_timeout 60s;
                        proxy_pass http://127.0.0.1:\(upstream ?? plain)/;
                    }
                }
            }
            """
    }

    /// The locations of `files/` whose responses have a lifetime or another directive for caches. PUT below `/written/`
    /// stores a file.
    private static func cachedLocations(_ folder: String) -> String {
        """
                    location /kept/ { expires 60s; alias \(folder)/files/; }
                    location /kept-packed/ {
                        expires 60s;
                        gzip on;
                        gzip_vary on;
                        gzip_min_length 1;
                        gzip_types text/plain;
                        alias \(folder)/files/;
                    }
                    location /written/ { expires 60s; dav_methods PUT; create_full_put_path on; }
                    location /epoch/ { expires epoch; alias \(folder)/files/; }
                    location /no-cache/ { add_header Cache-Control "no-cache"; alias \(folder)/files/; }
                    location /no-store/ { add_header Cache-Control "no-store"; alias \(folder)/files/; }
                    location /immutable/ {
                        add_header Cache-Control "max-age=60, immutable";
                        alias \(folder)/files/;
                    }
                    location /always/ { add_header Cache-Control "max-age=60" always; return 404; }
                    location /if-error/ {
                        add_header Cache-Control "max-age=60, stale-if-error=600";
                        alias \(folder)/files/;
                    }
                    location /must-revalidate/ {
                        add_header Cache-Control "max-age=60, must-revalidate, stale-if-error=600";
                        alias \(folder)/files/;
                    }
        """
    }
}
#endif
