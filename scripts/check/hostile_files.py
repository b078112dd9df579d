#!/usr/bin/env python3
"""Makes a corpus of hostile files, for this project's readers and for others': GGUF, vocabularies in GGUF, chat templates, GBNF grammars,
JSON schemas, safetensors, .npy, .npz, and pictures.

    hostile_files.py OUT [--seed 1] [--count 10000]     files made from the seed, the same on every machine
    hostile_files.py OUT --attacks                      public proofs of concept against other engines, rebuilt

OUT/manifest.jsonl has a line a file: file, kind, verdict, rule (its name), text (the rule in words), document (where it stands), seed, sha256,
and facts that a reader must find. Verdicts follow from the rule by which a file is made, no reader was asked:
    refuse   the file breaks the rule: a reader reports an error
    accept   the file keeps all rules, however odd it looks: a reader that refuses it is wrong
    bounded  the document leaves it open: any answer is right, but soon, in little memory, and without a crash
"""
import argparse
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from hostile import KINDS  # pylint: disable=wrong-import-position
from hostile.case import Random  # pylint: disable=wrong-import-position


def corpus(seed, count):
    """(name of the file, data, what the manifest says of it), kind by kind; within a kind the rules take turns."""
    index = 0
    for rules, share in KINDS:
        for i in range(max(1, count * share // 100)):
            rule = rules.all[i % len(rules.all)]
            own = Random(seed * 1_000_003 + index).next()
            data, facts = rule.case(Random(own))
            yield (f"{index:05}{rules.suffix}", data, {"kind": rules.kind, "verdict": rule.verdict, "rule": rule.name, "text": rule.text,
                                                       "document": rules.document, "seed": own, **facts})
            index += 1


def attacks():
    from hostile import attacks as made  # pylint: disable=import-outside-toplevel
    suffixes = {"vocabulary": ".gguf", "model": ".gguf", "template": ".jinja", "grammar": ".gbnf", "schema": ".json"}
    for i, attack in enumerate(made.ALL):
        yield (f"{i:02}{suffixes.get(attack.kind, '.' + attack.kind)}", attack.data,
               {"kind": attack.kind, "verdict": attack.verdict, "rule": attack.name, "text": attack.did, "document": attack.source, **attack.facts})


def write(folder, cases):
    """Writes the files and the manifest; returns how many there are of each kind and verdict."""
    os.makedirs(folder, exist_ok=True)
    counts = {}
    with open(os.path.join(folder, "manifest.jsonl"), "w", encoding="utf-8") as manifest:
        for name, data, about in cases:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
            manifest.write(json.dumps({"file": name, **about, "sha256": hashlib.sha256(data).hexdigest()}) + "\n")
            of_kind = counts.setdefault(about["kind"], {"refuse": 0, "accept": 0, "bounded": 0})
            of_kind[about["verdict"]] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", nargs="?", help="a folder, made where it is missing")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10000, help="files in all, about; at least one of each kind")
    parser.add_argument("--attacks", action="store_true", help="the rebuilt proofs of concept in place of files from a seed")
    parser.add_argument("--self-test", action="store_true", help="check this script")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if not arguments.out:
        parser.error("OUT is missing")
    counts = write(arguments.out, attacks() if arguments.attacks else corpus(arguments.seed, arguments.count))
    for kind, of_kind in counts.items():
        print(f"{kind:12} " + "  ".join(f"{verdict} {n}" for verdict, n in of_kind.items()))
    return 0


def self_test():
    """The same seed gives the same bytes, another seed others; a small corpus has every rule; names are not used twice."""
    first, again, other = (list(corpus(seed, 600)) for seed in (1, 1, 2))
    assert first == again, "the same seed gave other files"
    assert sum(a[1] != b[1] for a, b in zip(first, other)) > len(first) // 3, "another seed gave the same files"
    rules = [rule.name for kind, _ in KINDS for rule in kind.all]
    assert len(set(rules)) == len(rules), "two rules of one name"
    seen = {about["rule"] for _, _, about in first}
    few = {about["kind"] for _, _, about in first} - {"gguf", "vocabulary", "template", "grammar", "schema"}
    missing = [rule for rule in rules if rule not in seen and rule.split("/")[0] not in few]
    assert not missing, f"600 files lack {missing}"
    names = [about["rule"] for _, _, about in attacks()]
    assert len(set(names)) == len(names), "two attacks of one name"
    for _, _, about in attacks():
        assert about["document"].startswith("https://") and about["text"], about
    print(f"hostile_files.py: {len(rules)} rules, {len(names)} attacks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
