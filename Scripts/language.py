"""How much of the prose in the sources is in plain English: a smoke detector for idioms that a native reader stumbles over.

Counts comment blocks, and texts of more than three words in quotation marks, that hold a word from the list.
"""
import re

# Above this share a check fails. Some hits are harmless, so it is not zero.
CEILING = 0.02

MARKERS = re.compile(
    "|".join(
        [
            r"\b(?:nobody|somebody|whoever|everybody)\b",
            r"\b(?:go|goes|going|gone|went) on\b",
            r"\b(?:is|are|was|were|be|being|been) told\b",
            r"\bstands? (?:in|there|still|for the)\b",
            r"\btakes? back\b",
            r"\banew\b",
            r"\bmeanwhile\b",
            r"\blies in\b",
            r"\ba content\b",
            r"\bcontents (?:are|is|that|come|go|of nodes)\b",
            r"\bof (?:its|their|his) own\b",
            r"\b(?:by|for) itself\b",
            r"\bto be had\b",
            r"\bso many\b",
            r"\bdone with\b",
            r"\b(?:he|his|him)\b",
            r"\bsees to it\b",
            r"\bsays so\b",
            r"\bwho (?:asks|waits|reads)\b",
            r"(?:^|[.:;] )What (?:is|was|are|were|has|had|this|it|the|a|an|goes|comes|stands|follows)\b",
        ]
    ),
    re.IGNORECASE,
)
# A question may begin with "What is".
QUESTION = re.compile(r"What [^.:;]*\?")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def prose(text):
    """Comment blocks and longer strings, each with the line on which it begins."""
    block, start = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        stripped = line.strip()
        if stripped.startswith("//"):
            start = start or number
            block.append(stripped.lstrip("/").strip())
            continue
        if block:
            yield start, " ".join(block)
            block, start = [], 0
        code, _, trailing = line.partition(" // ")
        if trailing:
            yield number, trailing
        for string in STRING.findall(code):
            if len(string.split()) > 3:
                yield number, string


def is_marked(text):
    return MARKERS.search(QUESTION.sub("", text)) is not None


def count(texts):
    """Pieces of prose by file, and those that hold a marker."""
    total, marked = 0, []
    for path, text in texts:
        for number, piece in prose(text):
            total += 1
            if is_marked(piece):
                marked.append((path, number, piece))
    return total, marked


def self_test():
    for text, expected in {
        "// Nobody waits for it.": True,
        "/// Returns the record.": False,
        "// What is the size of\n// a page?": False,
        "// The zone.\n// What is left goes first.": True,
        'let hint = "the sync goes on when the server answers"': True,
        'let name = "a content"': False,
        "let a = 1 // told by nobody": True,
    }.items():
        if bool(count([("x", text)])[1]) != expected:
            raise SystemExit(f"language: the checker is wrong about {text!r}")
