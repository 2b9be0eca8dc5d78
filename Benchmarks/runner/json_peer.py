"""The peers of Python for `run-json`, with the command line of bench-json.

json_peer.py orjson|msgspec SHAPE check FILE
json_peer.py orjson|msgspec SHAPE decode|encode FILE WARM-UP COUNT

orjson makes dictionaries and lists, and msgspec instances of the types below.
"""

import datetime
import json
import pathlib
import sys
import time

import msgspec
import orjson


class User(msgspec.Struct):
    id: int
    login: str
    name: str
    email: str
    avatar_url: str
    followers: int
    site_admin: bool
    score: float


class Owner(msgspec.Struct):
    login: str
    id: int
    avatar_url: str
    type: str


class License(msgspec.Struct):
    key: str
    name: str


class Repository(msgspec.Struct, omit_defaults=True):
    id: int
    name: str
    full_name: str
    private: bool
    owner: Owner
    html_url: str
    description: str
    fork: bool
    created_at: str
    pushed_at: str
    size: int
    stargazers_count: int
    watchers_count: int
    forks_count: int
    open_issues_count: int
    default_branch: str
    topics: list[str]
    score: float
    homepage: str | None = None
    language: str | None = None
    license: License | None = None


class Article(msgspec.Struct):
    id: int
    title: str
    author: str
    body: str
    tags: list[str]


MEMBERS = [("id", int)] + [(f"{name}{number}", kind | None, None) for number in range(1, 7)
                           for name, kind in (("text", str), ("count", int), ("ratio", float), ("flag", bool))]
Sparse = msgspec.defstruct("Sparse", MEMBERS, omit_defaults=True)
TYPES = {
    "user": User,
    "repository": Repository,
    "page30": list[Repository],
    "page300": list[Repository],
    "doubles": list[float],
    "dictionaries": dict[str, dict[str, int]],
    "cjk": list[Article],
    "escapes": list[str],
    "pretty": list[Repository],
    "sparse": list[Sparse],
    "dates": list[datetime.datetime],
    "sorted": list[Repository],
    "base64": list[bytes],
}


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(element) for element in value] if isinstance(value, list) else value


def of_orjson(shape, text):
    """A decoder, an encoder, and the value to encode."""
    flags = {"pretty": orjson.OPT_INDENT_2, "sorted": orjson.OPT_SORT_KEYS, "dates": orjson.OPT_UTC_Z}.get(shape)
    value = without_nulls(orjson.loads(text))
    if shape == "dates":
        value = [datetime.datetime.fromisoformat(date.replace("Z", "+00:00")) for date in value]
    return orjson.loads, (lambda value: orjson.dumps(value, option=flags)) if flags else orjson.dumps, value


def of_msgspec(shape, text):
    decode = msgspec.json.Decoder(TYPES[shape]).decode
    return decode, msgspec.json.Encoder(order="sorted" if shape == "sorted" else None).encode, decode(text)


def measured(call, argument, warm_up, count):
    """The CPU time of a call in µs, and the result of the last one."""
    result = call(argument)
    for _ in range(warm_up):
        result = call(argument)
    start = time.process_time_ns()
    for _ in range(count):
        result = call(argument)
    return (time.process_time_ns() - start) / 1000 / max(count, 1), result


def main():
    coder, shape, mode, path, *numbers = sys.argv[1:]
    text = pathlib.Path(path).read_bytes()
    decode, encode, value = {"orjson": of_orjson, "msgspec": of_msgspec}[coder](shape, text)
    if mode == "check":
        sys.stdout.buffer.write(encode(value) + b"\n")
        return
    call, argument = (decode, text) if mode == "decode" else (encode, value)
    cpu, result = measured(call, argument, *map(int, numbers))
    print(json.dumps({"cpu_us": cpu, "bytes": len(encode(result) if mode == "decode" else result)}))


main()
