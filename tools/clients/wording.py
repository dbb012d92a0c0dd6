"""Says in the words of a language what the documents say in those of REST: names of operations in place of paths, and names of arguments
and of fields as the language writes them."""
from __future__ import annotations

import re
from collections.abc import Callable

# What is only of addresses and texts: a client escapes paths, sends lists, and takes times of its language.
OF_ADDRESSES = re.compile(r" ?(?:Slashes in the \w+ may be written as %2F|May also be repeated)\.")
OF_TEXTS = re.compile(r" ?A date alone is its beginning in UTC\.")
PATH = re.compile(r"(?<![\w/}\]`])/[a-z][\w{}/-]*")
# A name in quotes, one of a field within meta, and one that is no English word.
QUOTED, META, CAMEL = re.compile(r"`(\w+)`"), re.compile(r"\bmeta\.(\w+)"), re.compile(r"(?<![\w./{|\"`-])[a-z]+\d*(?:[A-Z][a-z0-9]+)+(?![\w/}|\"`-])")


class Wording:
    """How a language writes names. Fields are those of answers; times says that it takes no texts for them."""

    def __init__(self, model, method: Callable[[str], str], argument: Callable[..., str], field: Callable[[str], str], times: bool):
        self.method, self.argument, self.field, self.times = method, argument, field, times
        self.paths = {o.path.removeprefix("/api/v1"): o.name for o in model.operations if o.method == "GET"}
        self.operations = {o.name for o in model.operations}
        self.arguments = {f.name: f for o in model.operations for f in o.fields}
        self.properties = {f.name for made in model.objects.values() for f in made.fields}

    def __call__(self, text: str, operation=None) -> str:
        """The text, which an operation has, or an answer where that is None."""
        text = OF_ADDRESSES.sub("", text)
        if self.times:
            text = OF_TEXTS.sub("", text)
        text = PATH.sub(lambda m: self.method(self.paths[p]) if (p := m[0].removeprefix("/api/v1")) in self.paths else m[0], text)
        text = META.sub(lambda m: self.field("meta") + "." + self.field(m[1]), text)
        if operation:
            text = QUOTED.sub(lambda m: "`" + self.argument(f) + "`" if (f := operation.named(m[1])) else m[0], text)
        return CAMEL.sub(lambda m: self.named(m[0], operation), text).strip()

    def named(self, name: str, operation) -> str:
        if name in self.operations:
            return self.method(name)
        if operation and (f := operation.named(name)):
            return self.argument(f)
        if name in self.properties:
            return self.field(name)
        return self.argument(self.arguments[name]) if name in self.arguments else name
