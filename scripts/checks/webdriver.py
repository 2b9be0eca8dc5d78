"""Headless Chromium for the checks of pages."""

import base64
import json
import re
import subprocess
import sys
import time
import urllib.request


class Browser:
    """A few commands of WebDriver, over chromedriver."""

    def __init__(self, pictures, size="1280,1600"):
        self.pictures = pictures
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        line = ""
        while "port" not in line or "successfully" not in line:
            line = self.driver.stdout.readline() or sys.exit("chromedriver did not start")
        port = re.search(r"port (\d+)", line)[1]
        self.base = f"http://127.0.0.1:{port}/session"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={size}"]}
        self.base += "/" + self.call("", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})["sessionId"]

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read())["value"]

    def run(self, script, *arguments):
        return self.call("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments):
        """Waits until a script returns something true: at most 20 seconds."""
        for _ in range(200):
            if value := self.run(script, *arguments):
                return value
            time.sleep(0.1)
        raise TimeoutError(script)

    def write(self, selector, text):
        element = self.call("/element", {"using": "css selector", "value": selector})
        self.call(f"/element/{next(iter(element.values()))}/value", {"text": text})

    def open(self, url):
        self.call("/url", {"url": url})

    def appearance(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def picture(self, name):
        self.pictures.mkdir(parents=True, exist_ok=True)
        (self.pictures / f"{name}.png").write_bytes(base64.b64decode(self.call("/screenshot")))

    def end(self):
        try:
            request = urllib.request.Request(self.base, method="DELETE")
            urllib.request.urlopen(request, timeout=20).close()
        finally:
            self.driver.terminate()
            self.driver.wait()
