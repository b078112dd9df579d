"""What all kinds of hostile files share: the generator of random numbers, the rules, and the cases made by them."""

REFUSE, ACCEPT, BOUNDED = "refuse", "accept", "bounded"
MASK = 2**64 - 1


class Random:
    """SplitMix64: the same numbers in every version of Python and in every language."""

    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = self.state + 0x9E3779B97F4A7C15 & MASK
        x = self.state
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
        return x ^ x >> 31

    def below(self, limit):
        return self.next() % limit

    def between(self, least, most):
        return least + self.below(most - least + 1)

    def pick(self, items):
        return items[self.below(len(items))]

    def bytes(self, count):
        return b"".join(self.next().to_bytes(8, "little") for _ in range(count // 8 + 1))[:count]

    def word(self, least=1, most=8):
        return "".join(self.pick("abcdefghijklmnopqrstuvwxyz") for _ in range(self.between(least, most)))


class Rule:
    """A rule of a format and the files that break it (refuse), keep it (accept) or strain it (bounded: any answer, small and soon)."""

    def __init__(self, name, verdict, text, make):
        self.name, self.verdict, self.text, self.make = name, verdict, text, make

    def case(self, random):
        """The bytes of one file, and facts of it that a reader must report (counts, texts)."""
        made = self.make(random)
        return made if isinstance(made, tuple) else (made, {})


class Rules:
    """The rules of one kind of file, in the order in which a corpus goes through them."""

    def __init__(self, kind, suffix, document):
        self.kind, self.suffix, self.document, self.all = kind, suffix, document, []

    def __call__(self, name, verdict, text):
        def add(make):
            self.all.append(Rule(f"{self.kind}/{name}", verdict, text, make))
            return make
        return add

    def table(self, verdict, rows):
        """Rules whose file is fixed: (name, text of the rule, data or a list of them), each data with facts or without."""
        for name, text, data in rows:
            choices = data if isinstance(data, list) else [data]
            self(name, verdict, text)(lambda random, choices=choices: encoded(random.pick(choices)))


def encoded(made):
    data, facts = made if isinstance(made, tuple) else (made, {})
    return (data.encode() if isinstance(data, str) else data), facts


def flipped(random, data, most=4):
    """A copy with one to `most` bits flipped."""
    out = bytearray(data)
    for _ in range(random.between(1, most)):
        out[random.below(len(out))] ^= 1 << random.below(8)
    return bytes(out)
