"""What real.py gives to both engines: questions, and a megabyte of text of this machine's own files."""
import collections
import gettext
import glob
import gzip
import os
import sys

Piece = collections.namedtuple("Piece", "name data")
TEXT_BYTES = 1 << 20

QUESTIONS = """What is the capital of France?
Explain in two sentences why the sky is blue.
Write a haiku about the sea.
What is 17 plus 25?
List three fruits that are yellow.
Translate to French: "Good morning, my friend."
Who wrote Romeo and Juliet?
How do I boil an egg?
Write a Python function that returns the factorial of n.
What does the word "gimbal" mean?
Give me a recipe for pancakes with four ingredients.
Summarise: The cat sat on the mat. The dog came, and the cat ran away.
Is 97 a prime number? Answer yes or no, then explain.
Name the planets of the solar system in order.
What is the difference between TCP and UDP?
Write an SQL query that counts the rows of the table users.
Correct the grammar: "He go to school every days."
Tell me a short joke about computers.
What year did the Second World War end?
Write a C program that prints the numbers from 1 to 10.
Was ist die Hauptstadt von Österreich?
Erkläre in einem Satz, was ein Betriebssystem ist.
Schreibe ein kurzes Gedicht über den Herbst.
Wie viele Tage hat ein Schaltjahr?
Quelle est la capitale de l'Italie ?
Explique en une phrase ce qu'est la photosynthèse.
Écris une courte lettre à un ami.
Combien font douze fois douze ?
¿Cuál es la capital de España?
¿Qué es un agujero negro?
Escribe tres consejos para dormir mejor.
Traduce al inglés: "Me gusta leer libros por la noche."
Qual è la capitale del Portogallo?
Scrivi una frase sul mare.
Qual é a capital do Brasil?
O que é a internet?
Wat is de hoofdstad van Nederland?
Jaka jest stolica Polski?
Jaké je hlavní město České republiky?
Hur många ben har en spindel?
Какая столица России?
Объясни одним предложением, что такое радуга.
Яка столиця України?
Ποια είναι η πρωτεύουσα της Ελλάδας;
Türkiye'nin başkenti neresidir?
日本の首都はどこですか。
中国的首都是哪里？请用一句话回答。
한국의 수도는 어디입니까?
भारत की राजधानी क्या है?
ما هي عاصمة مصر؟
""".splitlines()


def say(text):
    print(f"test-real: {text}", file=sys.stderr, flush=True)


def decoded_file(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as file:
        return file.read().decode("utf-8", "ignore").encode()


def plain_manual(path):
    """A manual page without its requests; what is left is the language's text."""
    lines = decoded_file(path).decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith((".\\", "'\\"))).encode()


def messages(path):
    with open(path, "rb") as file:
        catalogue = gettext.GNUTranslations(file)
    texts = [v for k, v in sorted(((str(k), v) for k, v in catalogue._catalog.items()), key=lambda item: item[0]) if v]
    return "\n".join(texts).encode()


# (kind, share of the text, most bytes of a file, files, how they are read)
KINDS = [
    ("licences", 0.10, 20000, ["/usr/share/common-licenses/*"], decoded_file),
    ("documentation", 0.20, 16000, ["/usr/share/doc/*/README*", "/usr/share/doc/*/NEWS*", "/usr/share/doc/*/copyright"], decoded_file),
    ("manual pages in other languages", 0.25, 6000, ["/usr/share/man/[a-z][a-z]*/man1/*.gz", "/usr/share/man/[a-z][a-z]*/man8/*.gz"],
     plain_manual),
    ("message catalogues", 0.20, 4000, ["/usr/share/locale/*/LC_MESSAGES/*.mo"], messages),
    ("locale files", 0.05, 8000, ["/usr/share/i18n/locales/*_*"], decoded_file),
    ("code", 0.20, 12000, ["/usr/lib/python3/dist-packages/*/*.py", "/usr/lib/python3.*/*.py", "/usr/include/*.h", "/etc/*.conf",
                           "/usr/bin/*.sh"], decoded_file),
]


def mixed_text():
    """[Piece], a megabyte altogether, the same on the same machine: of each kind every so many-th file, cut where a character ends."""
    pieces, counts = [], {}
    for kind, share, most, patterns, read in KINDS:
        paths = sorted(path for pattern in patterns for path in glob.glob(pattern) if os.path.isfile(path) and os.path.getsize(path) > 300)
        left = int(share * TEXT_BYTES)
        # Spread over the whole list, so that every language has its turn.
        step = next((s for s in (61, 53, 47, 43, 41, 37) if len(paths) % s), 1)
        order = [paths[i * step % len(paths)] for i in range(len(paths))]
        for path in order:
            if left <= 0:
                break
            try:
                data = read(path)[:min(most, left)].decode("utf-8", "ignore").encode()
            except (OSError, ValueError, EOFError, LookupError):
                continue
            if len(data) < 200:
                continue
            pieces.append(Piece(kind, data))
            left -= len(data)
        counts[kind] = int(share * TEXT_BYTES) - left
    if sum(counts.values()) < 0.9 * TEXT_BYTES:
        say(f"this machine has only {sum(counts.values())} bytes of text: {counts}")
    return pieces, counts
