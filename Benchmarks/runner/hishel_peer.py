"""The HTTP cache of Python, hishel over httpx: hits from memory. Prints one line of JSON like bench-http-cache."""

import json
import resource
import sys
import time

import hishel
import httpx

url, count = sys.argv[1], int(sys.argv[2])
client = hishel.CacheClient(storage=hishel.InMemoryStorage(), trust_env=False) \
    if hasattr(hishel, "CacheClient") else hishel.httpx.SyncCacheClient(trust_env=False)


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


for _ in range(max(1, count // 10)):
    client.get(url).read()
wall, cpu = time.monotonic(), used()
hits = 0
for _ in range(count):
    response = client.get(url)
    hits += bool(response.extensions.get("from_cache") or response.extensions.get("hishel_from_cache"))
seconds, cpu = time.monotonic() - wall, used() - cpu
assert hits == count, f"{hits} of {count} responses came from the cache"
print(json.dumps({"rps": count / seconds, "cpu_us": cpu * 1e6 / count, "seconds": seconds, "rss_mib": 0,
                  "version": hishel.__version__ if hasattr(hishel, "__version__") else ""}))
assert isinstance(client, httpx.Client)
