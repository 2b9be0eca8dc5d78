"""The servers: nginx with one worker, where HTTP/1.1 and HTTP/2 each have a plain port and one with TLS, and the upload
sink."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

CONFIGURATION = """\
{user}
worker_processes 1;
daemon off;
pid {work}/nginx.pid;
error_log {work}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    default_type application/octet-stream;
    keepalive_timeout 3600s;
    keepalive_time 24h;
    keepalive_requests 1000000000;
    http2_max_concurrent_streams 256;
    open_file_cache max=64 inactive=1h;
    client_max_body_size 0;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    server {{
        listen 127.0.0.1:{http} backlog=1024;
        listen 127.0.0.1:{h2c} http2 backlog=1024;
        listen 127.0.0.1:{https1} ssl backlog=1024;
        listen 127.0.0.1:{https} ssl http2 backlog=1024;
        ssl_certificate {work}/server.pem;
        ssl_certificate_key {work}/server.key;
        root {files};
        location = /small {{
            default_type application/json;
            return 200 '{small}';
        }}
        # An answer leaves in one write, as that of an application does.
        location /typed/ {{
            default_type application/json;
            sendfile off;
            output_buffers 1 512k;
        }}
        # nginx refuses to post to a file, and answers with the error page, a file as well. The mirror, a copy of the
        # request to a place that does nothing, makes it read the whole body before. The connection stays open.
        location = /typed/users {{
            alias {files}/typed/user.json;
            client_body_buffer_size 64k;
            mirror /nothing;
            error_page 405 =200 /typed/user.json;
        }}
        location = /nothing {{
            internal;
            return 204;
        }}
    }}
}}
"""

SMALL = '{"id":1,"name":"Ada Lovelace","email":"ada@example.com","verified":true,"n":42}'

AUTHORITY = """\
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=Bench-CA
 -keyout {work}/ca.key -out {work}/ca.pem -addext basicConstraints=critical,CA:TRUE
 -addext keyUsage=critical,keyCertSign"""
REQUEST = """\
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost
 -keyout {work}/server.key -out {work}/server.csr"""
SIGN = """\
openssl x509 -req -in {work}/server.csr -CA {work}/ca.pem -CAkey {work}/ca.key -CAcreateserial -days 30
 -extfile {work}/server.ext -out {work}/server.pem"""


def user_line():
    """The user of nginx's workers: the one who runs the benchmark."""
    if os.geteuid() != 0:
        return ""
    return f"user root {'root' if os.path.exists('/etc/debian_version') else ''};"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Server:
    """Context manager: starts everything, and removes processes and files at the end, however it ends."""

    def __init__(self, work, sink, size, texts=None):
        self.work, self.sink_tool, self.size = pathlib.Path(work), sink, size
        self.texts = texts or {}  # By name: the JSON of the typed calls.
        self.folder, self.processes = None, []
        self.fields = {}  # By scenario: the fields of Tern's requests, for the peers that take them.

    def __enter__(self):
        try:
            return self._start()
        except BaseException:
            self.__exit__()
            raise

    def _start(self):
        self.work.mkdir(exist_ok=True)
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tern-bench-", dir=memory))
        if shutil.disk_usage(self.folder).free < 2 * self.size + (64 << 20):
            raise SystemExit(f"Benchmarks/run: {self.folder.parent} needs {2 * self.size >> 20} MiB free")
        self._write_files()
        self._write_certificates()
        http, https, h2c, https1 = free_ports(4)
        configuration = CONFIGURATION.format(user=user_line(), work=self.work, files=self.folder, http=http, https=https,
                                             h2c=h2c, https1=https1, small=SMALL)
        (self.work / "nginx.conf").write_text(configuration)
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        log = self.work / "error.log"
        self.processes.append(subprocess.Popen(
            [nginx, "-p", self.work, "-e", log, "-c", self.work / "nginx.conf"], stdin=subprocess.DEVNULL))
        sink = subprocess.Popen([self.sink_tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(sink)
        self.http, self.https = f"http://127.0.0.1:{http}", f"https://127.0.0.1:{https}"
        self.h2c, self.https1 = f"http://127.0.0.1:{h2c}", f"https://127.0.0.1:{https1}"
        self.sink = f"http://127.0.0.1:{sink.stdout.readline().strip()}"
        self.ca = self.work / "ca.pem"
        self._await(http, log)
        return self

    def address(self, scenario, has_tls=True):
        """Scheme and authority of the server of a scenario; without TLS the plain port of HTTP/2."""
        if scenario == "h2":
            return self.https if has_tls else self.h2c
        return self.https1 if scenario == "https" else self.http

    def _write_files(self):
        (self.folder / "64k").write_bytes(os.urandom(65_536))
        (self.folder / "typed").mkdir()
        for name, text in self.texts.items():
            (self.folder / "typed" / f"{name}.json").write_bytes(text)
        block = os.urandom(1 << 20)
        with open(self.folder / "large", "wb") as file:
            for _ in range(self.size >> 20):
                file.write(block)

    def _write_certificates(self):
        (self.work / "server.ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        for command in (AUTHORITY, REQUEST, SIGN):
            words = [word.format(work=self.work) for word in command.split()]
            subprocess.run(words, check=True, capture_output=True)

    def _await(self, port, log):
        for _ in range(100):
            if self.processes[0].poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"Benchmarks/run: nginx does not start:\n{log.read_text() if log.exists() else ''}")

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
