"""The texts of JSON that `run-json` measures, made the same way on each run, and who can read and write them."""

import base64
import dataclasses
import json
import random

PEERS = ("tern", "foundation", "serde", "serde-exact", "go", "orjson", "msgspec")
COMMON = ("tern", "foundation", "serde", "go", "orjson", "msgspec")
# serde_json has neither dates nor Base64. orjson leaves both as strings, but writes dates.
NATIVE = ("tern", "foundation", "go", "msgspec")
WORDS = ("swift", "network", "cache", "image", "stream", "parser", "socket", "loader", "server", "client", "queue",
         "tape")
LANGUAGES = ("Swift", "Rust", "Go", "Python", "C++", "Kotlin")


@dataclasses.dataclass(frozen=True)
class Shape:
    """A text and its type, and the targets of Tern: at least so many times as fast as Foundation, and at most so many
    times the time of serde_json."""

    name: str
    title: str
    decoders: tuple = COMMON
    encoders: tuple = COMMON
    decode_foundation: float = 6.5
    encode_foundation: float = 9.0
    decode_serde: float = 1.1
    encode_serde: float = 2.5

    def peers(self, direction):
        return self.decoders if direction == "decode" else self.encoders

    def targets(self, direction):
        if direction == "decode":
            return self.decode_foundation, self.decode_serde
        return self.encode_foundation, self.encode_serde


SHAPES = (
    Shape("user", "a user", decode_serde=1.7),
    Shape("repository", "a repository", decode_serde=1.7),
    Shape("page30", "30 repositories"),
    Shape("page300", "300 repositories"),
    Shape("doubles", "50,000 doubles", decode_serde=1.25,
          decoders=("tern", "foundation", "serde", "serde-exact", "go", "orjson", "msgspec")),
    Shape("dictionaries", "a dictionary of dictionaries", decode_foundation=10),
    Shape("cjk", "CJK text"),
    Shape("escapes", "strings with many escapes"),
    # msgspec indents only in a second pass over its text.
    Shape("pretty", "30 repositories, pretty-printed", encoders=("tern", "foundation", "serde", "go", "orjson")),
    Shape("sparse", "objects with many absent keys"),
    Shape("dates", "1,000 dates, ISO 8601", decode_foundation=10, decoders=NATIVE, encoders=(*NATIVE, "orjson")),
    Shape("sorted", "30 repositories, sorted keys", decoders=(), encoders=("tern", "foundation", "orjson", "msgspec")),
    Shape("base64", "binary data, Base64", decoders=NATIVE, encoders=NATIVE),
)


class Chance:
    """Numbers that are the same in each version of Python: of all methods only `random()` promises that."""

    def __init__(self, seed):
        self.source = random.Random(seed)

    def below(self, limit):
        return int(self.source.random() * limit)

    def one(self, values):
        return values[self.below(len(values))]

    def words(self, count):
        return " ".join(self.one(WORDS) for _ in range(count))

    def date(self):
        seconds = self.below(86_400)
        return (f"{1970 + self.below(67):04}-{1 + self.below(12):02}-{1 + self.below(28):02}"
                f"T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z")


def user():
    return {"id": 583231, "login": "octocat", "name": "The Octocat", "email": "octocat@mail.example.com",
            "avatar_url": "https://avatars.example.com/user/583231", "followers": 17432, "site_admin": False,
            "score": 98.25}


def repository(chance, number):
    owner, name = f"{chance.one(WORDS)}{chance.below(10_000)}", f"{chance.one(WORDS)}-{chance.one(WORDS)}"
    stars = chance.below(90_000)
    return {
        "id": 44_838_949 + 7919 * number,
        "name": name,
        "full_name": f"{owner}/{name}",
        "private": False,
        "owner": {"login": owner, "id": 10_639_145 + chance.below(1_000_000),
                  "avatar_url": f"https://avatars.example.com/u/{10_639_145 + number}?v=4", "type": "Organization"},
        "html_url": f"https://git.example.com/{owner}/{name}",
        "description": chance.words(8 + chance.below(8)).capitalize(),
        "fork": chance.below(5) == 0,
        "created_at": chance.date(),
        "pushed_at": chance.date(),
        "homepage": f"https://www.example.com/{name}" if number % 3 == 0 else None,
        "size": chance.below(900_000),
        "stargazers_count": stars,
        "watchers_count": stars,
        "language": chance.one(LANGUAGES) if number % 7 else None,
        "forks_count": chance.below(9_000),
        "open_issues_count": chance.below(700),
        "default_branch": "main",
        "topics": [chance.one(WORDS) for _ in range(2 + chance.below(3))],
        "license": {"key": "apache-2.0", "name": "Apache License 2.0"} if number % 4 else None,
        "score": 1 + chance.below(1000) / 16,
    }


def article(chance, number):
    def text(length):
        # Han, kana and Hangul, with the full stop of Chinese and Japanese.
        letters = ((0x4E00, 6000), (0x4E00, 6000), (0x3041, 80), (0xAC00, 2000))
        return "".join("。" if index % 17 == 16 else chr(start + chance.below(count))
                       for index, (start, count) in enumerate(chance.one(letters) for _ in range(length)))

    return {"id": number, "title": text(12), "author": text(4), "body": text(160), "tags": [text(3), text(2)]}


def escaped(chance):
    special = '"\\\n\t\n"\x01é😀/\r"'
    return "".join(chance.one(special) if chance.below(5) == 0 else chr(97 + chance.below(26)) for _ in range(120))


def sparse(chance, number):
    """An object of 24 optional members, of which four are there."""
    made = {"id": number}
    for kind in range(4):
        field = f"{('text', 'count', 'ratio', 'flag')[kind]}{1 + chance.below(6)}"
        made[field] = (chance.one(WORDS), chance.below(100_000), chance.below(1000) / 8, chance.below(2) == 1)[kind]
    return made


def counts(chance):
    return {f"{word}-{chance.below(90) + 10}": chance.below(100_000) for word in WORDS for _ in range(2)}


def binary(chance):
    return base64.b64encode(bytes(chance.below(256) for _ in range(1024))).decode()


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def texts():
    """The text of each shape by its name."""
    chance = Chance(44)
    one = repository(chance, 3)
    one["description"] = ""
    one["description"] = chance.words(40).capitalize()[:727 - len(compact(one))]
    page30 = [repository(chance, number) for number in range(30)]
    made = {
        "user": compact(user()),
        "repository": compact(one),
        "page30": compact(page30),
        "page300": compact([repository(chance, number) for number in range(300)]),
        "doubles": compact([(chance.source.random() - 0.5) * 10 ** chance.below(6) for _ in range(50_000)]),
        "dictionaries": compact({f"user-{1000 + number}": counts(chance) for number in range(200)}),
        "cjk": compact([article(chance, number) for number in range(40)]),
        "escapes": json.dumps([escaped(chance) for _ in range(120)], separators=(",", ":")).encode(),
        "pretty": json.dumps(page30, indent=2).encode(),
        "sparse": compact([sparse(chance, number) for number in range(300)]),
        "dates": compact([chance.date() for _ in range(1000)]),
        "sorted": compact(page30),
        "base64": compact([binary(chance) for _ in range(16)]),
    }
    # The sizes that the targets name.
    assert (len(made["user"]), len(made["repository"])) == (193, 727)
    return made
