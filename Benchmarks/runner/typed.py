"""The JSON of the typed calls, made the same way on each run, and the numbers by which the peers check it."""

import json_shapes

# With it the pages have 21 KB and 214 KB.
SEED = 31
# In place of every sixth description: the texts are ASCII but for these.
DESCRIPTIONS = ("Café au lait for streams", "日本 maps", "A résumé of the 日本 servers")


def user():
    return json_shapes.user()


def page(count):
    chance = json_shapes.Chance(SEED)
    made = [json_shapes.repository(chance, number) for number in range(count)]
    for number, repository in enumerate(made):
        if number % 6 == 5:
            repository["description"] = DESCRIPTIONS[number // 6 % len(DESCRIPTIONS)]
        # The encoders do not agree on the text of a double that is a whole number.
        if repository["score"] == int(repository["score"]):
            repository["score"] += 0.5
    return made


BODIES = {"user": user(), "page30": page(30), "page300": page(300)}


def text(name):
    return json_shapes.compact(BODIES[name])


def expected(name):
    """The number of the values and the sums of two of their numbers, as the option --expect takes them."""
    body = BODIES[name]
    if name == "user":
        return f"1,{body['id']},{body['followers']}"
    return ",".join(str(number) for number in (len(body), sum(repository["stargazers_count"] for repository in body),
                                               sum(repository["size"] for repository in body)))


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(element) for element in value] if isinstance(value, list) else value
